// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "math"

// number is what an expression of type int may become: a value from least to most,
// or an error. If it is open it may be a value of another type as well.
type number struct {
	least, most int64
	fails       bool
	open        bool
}

var openNumber = number{open: true, fails: true}

func exactly(value int64) number { return number{least: value, most: value} }

// isNever tells that there is no value: it fails for sure.
func (n number) isNever() bool { return !n.open && n.least > n.most }

// never is the number that fails for sure.
var never = number{least: 1, most: 0, fails: true}

// either may become what a or b may.
func either(a, b number) number {
	switch {
	case a.open || b.open:
		return openNumber
	case a.isNever():
		b.fails = true
		return b
	case b.isNever():
		a.fails = true
		return a
	}
	return number{least: min(a.least, b.least), most: max(a.most, b.most), fails: a.fails || b.fails}
}

// combine applies a function that is monotonic in each operand, so that its
// extremes are at the corners. f is false on overflow, which CEL makes an error.
func combine(a, b number, f func(x, y int64) (int64, bool)) number {
	switch {
	case a.open || b.open:
		return openNumber
	case a.isNever() || b.isNever():
		return never
	}
	result := number{least: math.MaxInt64, most: math.MinInt64, fails: a.fails || b.fails}
	for _, x := range [2]int64{a.least, a.most} {
		for _, y := range [2]int64{b.least, b.most} {
			value, ok := f(x, y)
			if !ok {
				// Some values overflow, others may not.
				return number{least: math.MinInt64, most: math.MaxInt64, fails: true}
			}
			result.least, result.most = min(result.least, value), max(result.most, value)
		}
	}
	return result
}

func add(x, y int64) (int64, bool) {
	sum := x + y
	return sum, (sum > x) == (y > 0)
}

func subtract(x, y int64) (int64, bool) {
	difference := x - y
	return difference, (difference < x) == (y > 0)
}

func multiply(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	product := x * y
	overflow := product/y != x || x == -1 && y == math.MinInt64 || y == -1 && x == math.MinInt64
	return product, !overflow
}

// relation is a comparison of two numbers.
type relation int

const (
	equal relation = iota
	less
	lessOrEqual
)

func compare(r relation, a, b number) Outcome {
	if a.open || b.open {
		return Open
	}
	var result Outcome
	if a.fails || b.fails {
		result = Error
	}
	if a.isNever() || b.isNever() {
		return Error
	}
	switch r {
	case equal:
		if a.least <= b.most && b.least <= a.most {
			result |= True
		}
		if a.least != a.most || b.least != b.most || a.least != b.least {
			result |= False
		}
	case less:
		if a.least < b.most {
			result |= True
		}
		if a.most >= b.least {
			result |= False
		}
	case lessOrEqual:
		if a.least <= b.most {
			result |= True
		}
		if a.most > b.least {
			result |= False
		}
	}
	return result
}
