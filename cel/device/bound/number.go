// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"

	"github.com/google/cel-go/common/operators"
)

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

// isExact tells that there is one value only, besides failing.
func (n number) isExact() bool { return !n.open && n.least == n.most }

// anyNumber is an int or an error.
var anyNumber = number{least: math.MinInt64, most: math.MaxInt64, fails: true}

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

// operation is one of CEL's on two ints. The result is false where CEL has an error.
type operation struct {
	name  string
	apply func(x, y int64) (int64, bool)
	// monotonic in each operand: the extremes are at the corners.
	monotonic bool
}

var (
	addition       = operation{"add", add, true}
	subtraction    = operation{"subtract", subtract, true}
	multiplication = operation{"multiply", multiply, true}
	division       = operation{"divide", divide, false}
	remainder      = operation{"modulo", modulo, false}
)

// operationOf returns the operation of an operator.
func operationOf(function string) (o operation, known bool) {
	switch function {
	case operators.Add:
		return addition, true
	case operators.Subtract:
		return subtraction, true
	case operators.Multiply:
		return multiplication, true
	case operators.Divide:
		return division, true
	case operators.Modulo:
		return remainder, true
	default:
		return operation{}, false
	}
}

// combine applies an operation.
func combine(a, b number, o operation) number {
	switch {
	case a.open || b.open:
		return openNumber
	case a.isNever() || b.isNever():
		return never
	case a.isExact() && b.isExact():
		value, ok := o.apply(a.least, b.least)
		if !ok {
			return never
		}
		return number{least: value, most: value, fails: a.fails || b.fails}
	case !o.monotonic:
		return anyNumber
	}
	result := number{least: math.MaxInt64, most: math.MinInt64, fails: a.fails || b.fails}
	for _, x := range [2]int64{a.least, a.most} {
		for _, y := range [2]int64{b.least, b.most} {
			value, ok := o.apply(x, y)
			if !ok {
				// Some values overflow, others may not.
				return anyNumber
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

func divide(x, y int64) (int64, bool) {
	if y == 0 || x == math.MinInt64 && y == -1 {
		return 0, false
	}
	return x / y, true
}

func modulo(x, y int64) (int64, bool) {
	if y == 0 || x == math.MinInt64 && y == -1 {
		return 0, false
	}
	return x % y, true
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

func (n number) negate() number {
	if n.open || n.isNever() {
		return n
	}
	if n.least == math.MinInt64 {
		return openNumber
	}
	return number{least: -n.most, most: -n.least, fails: n.fails}
}

// farthest is how far from zero numbers may be so that no sum of those of as many devices as a set may have is more than
// an int64 has room for, in whatever order they are added.
const farthest = 1 << 47

// isFar reports whether a number may be farther than that. Which sums fail then depends on the order.
func isFar(n number) bool {
	return !n.open && !n.isNever() && (n.least < -farthest || n.most > farthest)
}
