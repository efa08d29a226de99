// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"math"

	"github.com/google/cel-go/common/operators"
)

// A Number bounds the value of an expression of type int: a value from Least to Most, or an error if Fails is set. If Open is
// set, the value may be anything, even of another type.
type Number struct {
	Least, Most int64
	Fails       bool
	Open        bool
}

// OpenNumber may be any value or an error.
var OpenNumber = Number{Open: true, Fails: true}

// Exactly returns the number with one value and no error.
func Exactly(value int64) Number { return Number{Least: value, Most: value} }

// IsNever reports whether the expression has no possible value, so that it surely fails.
func (n Number) IsNever() bool { return !n.Open && n.Least > n.Most }

// IsExact reports whether exactly one value is possible. An error may be possible, too.
func (n Number) IsExact() bool { return !n.Open && n.Least == n.Most }

// AnyNumber is any int or an error.
var AnyNumber = Number{Least: math.MinInt64, Most: math.MaxInt64, Fails: true}

// Never is the number without a possible value: the expression surely fails.
var Never = Number{Least: 1, Most: 0, Fails: true}

// Either returns a number that includes all values of a and of b.
func Either(a, b Number) Number {
	switch {
	case a.Open || b.Open:
		return OpenNumber
	case a.IsNever():
		b.Fails = true
		return b
	case b.IsNever():
		a.Fails = true
		return a
	}
	return Number{Least: min(a.Least, b.Least), Most: max(a.Most, b.Most), Fails: a.Fails || b.Fails}
}

// An Operation is an operation of CEL on two ints. apply returns false if CEL returns an error.
type Operation struct {
	Name  string
	apply func(x, y int64) (int64, bool)
	// monotonic means that the result only grows, or only falls, if one operand grows. So the extreme results come from extreme
	// operands.
	monotonic bool
}

// CEL's operations on ints.
var (
	Addition       = Operation{"add", Add, true}
	Subtraction    = Operation{"subtract", Subtract, true}
	Multiplication = Operation{"multiply", Multiply, true}
	Division       = Operation{"divide", divide, false}
	Remainder      = Operation{"modulo", modulo, false}
)

// OperationOf returns the operation for the name of a CEL operator.
func OperationOf(function string) (o Operation, known bool) {
	switch function {
	case operators.Add:
		return Addition, true
	case operators.Subtract:
		return Subtraction, true
	case operators.Multiply:
		return Multiplication, true
	case operators.Divide:
		return Division, true
	case operators.Modulo:
		return Remainder, true
	default:
		return Operation{}, false
	}
}

// Combine returns the bounds of an operation on two bounded operands.
func Combine(a, b Number, o Operation) Number {
	switch {
	case a.Open || b.Open:
		return OpenNumber
	case a.IsNever() || b.IsNever():
		return Never
	case a.IsExact() && b.IsExact():
		value, ok := o.apply(a.Least, b.Least)
		if !ok {
			return Never
		}
		return Number{Least: value, Most: value, Fails: a.Fails || b.Fails}
	case !o.monotonic:
		return AnyNumber
	}
	result := Number{Least: math.MaxInt64, Most: math.MinInt64, Fails: a.Fails || b.Fails}
	for _, x := range [2]int64{a.Least, a.Most} {
		for _, y := range [2]int64{b.Least, b.Most} {
			value, ok := o.apply(x, y)
			if !ok {
				// Some operands may overflow and others not, so any result is possible.
				return AnyNumber
			}
			result.Least, result.Most = min(result.Least, value), max(result.Most, value)
		}
	}
	return result
}

// Add returns the sum, and false if it overflows.
func Add(x, y int64) (int64, bool) {
	sum := x + y
	return sum, (sum > x) == (y > 0)
}

// Subtract returns the difference, and false if it overflows.
func Subtract(x, y int64) (int64, bool) {
	difference := x - y
	return difference, (difference < x) == (y > 0)
}

// Multiply returns the product, and false if it overflows.
func Multiply(x, y int64) (int64, bool) {
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

// A Relation is a comparison of two numbers.
type Relation int

// The comparisons. Other comparisons are expressed by exchanging the sides or by a negation.
const (
	Equal Relation = iota
	Less
	LessOrEqual
)

// Compare returns the possible results of comparing two bounded numbers.
func Compare(r Relation, a, b Number) Outcome {
	if a.Open || b.Open {
		return Open
	}
	var result Outcome
	if a.Fails || b.Fails {
		result = Error
	}
	if a.IsNever() || b.IsNever() {
		return Error
	}
	switch r {
	case Equal:
		if a.Least <= b.Most && b.Least <= a.Most {
			result |= True
		}
		if a.Least != a.Most || b.Least != b.Most || a.Least != b.Least {
			result |= False
		}
	case Less:
		if a.Least < b.Most {
			result |= True
		}
		if a.Most >= b.Least {
			result |= False
		}
	case LessOrEqual:
		if a.Least <= b.Most {
			result |= True
		}
		if a.Most > b.Least {
			result |= False
		}
	}
	return result
}

// Negate returns the bounds of -x if x is bounded by n.
func (n Number) Negate() Number {
	if n.Open || n.IsNever() {
		return n
	}
	if n.Least == math.MinInt64 {
		return OpenNumber
	}
	return Number{Least: -n.Most, Most: -n.Least, Fails: n.Fails}
}

// farthest is the maximum distance from zero of a number that can be summed over the largest set without overflow, in any order
// of addition.
const farthest = 1 << 47

// IsFar reports whether a number may be farther from zero than farthest. Then the order of addition may decide whether a sum
// overflows.
func IsFar(n Number) bool {
	return !n.Open && !n.IsNever() && (n.Least < -farthest || n.Most > farthest)
}
