// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import "math"

// Limits is the range of numbers, from Least to Most, that satisfy a comparison with a constant.
type Limits struct{ Least, Most int64 }

// The values of Least and Most that mean no limit.
const (
	UnlimitedBelow = math.MinInt64
	Unlimited      = math.MaxInt64
)

// LimitsOf returns the numbers x that make "x r value" true, or "value r x" if flipped is set.
func LimitsOf(r Relation, value int64, flipped bool) Limits {
	switch {
	case r == Equal:
		return Limits{value, value}
	case r == LessOrEqual && flipped:
		return Limits{value, Unlimited}
	case r == LessOrEqual:
		return Limits{UnlimitedBelow, value}
	case flipped:
		return Limits{Saturated(value, 1), Unlimited}
	default:
		return Limits{UnlimitedBelow, Saturated(value, -1)}
	}
}

// Verdict returns the possible outcomes of the comparison for a number between fewest and most.
func (l Limits) Verdict(fewest, most int64) Outcome {
	switch {
	case most < l.Least || fewest > l.Most:
		return False
	case fewest >= l.Least && most <= l.Most:
		return True
	default:
		return True | False
	}
}

// Opposite returns the range of counts outside of l. It returns false if these counts are not one range. Negative numbers are
// ignored, because counts are not negative.
func (l Limits) Opposite() (Limits, bool) {
	switch {
	case l.Most == Unlimited && l.Least > UnlimitedBelow:
		return Limits{UnlimitedBelow, l.Least - 1}, true
	case l.Least <= 0 && l.Most < Unlimited:
		return Limits{l.Most + 1, Unlimited}, true
	default:
		return Limits{}, false
	}
}

// Negate returns the limits of -x if x is within l. It omits the smallest int64, because the negative of this number overflows.
func (l Limits) Negate() Limits {
	result := Limits{UnlimitedBelow, Unlimited}
	if l.Most != Unlimited {
		result.Least = -max(l.Most, -math.MaxInt64)
	}
	if l.Least != UnlimitedBelow {
		result.Most = -l.Least
	}
	return result
}

// OrUnlimited returns l without Least if other has no Least, and without Most if other has no Most.
func (l Limits) OrUnlimited(other Limits) Limits {
	if other.Least == UnlimitedBelow {
		l.Least = UnlimitedBelow
	}
	if other.Most == Unlimited {
		l.Most = Unlimited
	}
	return l
}

// Divide returns the limits of x if factor*x is within l. The factor must be small enough that nothing overflows.
func (l Limits) Divide(factor int64) Limits {
	if factor < 0 {
		return l.Negate().Divide(-factor)
	}
	if factor == 0 {
		if l.Least <= 0 && l.Most >= 0 {
			return Limits{UnlimitedBelow, Unlimited}
		}
		return Limits{Unlimited, UnlimitedBelow}
	}
	if l.Least != UnlimitedBelow {
		l.Least = -FloorOf(-l.Least, factor)
	}
	if l.Most != Unlimited {
		l.Most = FloorOf(l.Most, factor)
	}
	return l
}

// Times returns the limits of x if x/by, rounded towards zero, is within l.
func (l Limits) Times(by int64) Limits {
	if l.Least != UnlimitedBelow {
		if l.Least = saturatedProduct(l.Least, by); l.Least <= 0 {
			l.Least = Saturated(l.Least, 1-by)
		}
	}
	if l.Most != Unlimited {
		if l.Most = saturatedProduct(l.Most, by); l.Most >= 0 {
			l.Most = Saturated(l.Most, by-1)
		}
	}
	return l
}

// Saturated adds two numbers. A sum outside of int64 becomes the nearest int64.
func Saturated(x, y int64) int64 {
	switch sum, ok := Add(x, y); {
	case ok:
		return sum
	case y > 0:
		return math.MaxInt64
	default:
		return math.MinInt64
	}
}

func saturatedProduct(x, by int64) int64 {
	switch product, ok := Multiply(x, by); {
	case ok:
		return product
	case x > 0:
		return Unlimited
	default:
		return UnlimitedBelow
	}
}

// FloorOf returns the quotient rounded down. The divisor must be positive.
func FloorOf(x, by int64) int64 {
	quotient := x / by
	if x%by < 0 {
		quotient--
	}
	return quotient
}
