// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "math"

// limits are the numbers, from least to most, for which a comparison with a constant
// is true.
type limits struct{ least, most int64 }

const (
	unlimitedBelow = math.MinInt64
	unlimited      = math.MaxInt64
)

// limitsOf reads "x relation value", or with flipped "value relation x".
func limitsOf(r relation, value int64, flipped bool) limits {
	switch {
	case r == equal:
		return limits{value, value}
	case r == lessOrEqual && flipped:
		return limits{value, unlimited}
	case r == lessOrEqual:
		return limits{unlimitedBelow, value}
	case flipped:
		return limits{saturated(value, 1), unlimited}
	default:
		return limits{unlimitedBelow, saturated(value, -1)}
	}
}

// verdict is the outcome for a number from fewest to most.
func (l limits) verdict(fewest, most int64) Outcome {
	switch {
	case most < l.least || fewest > l.most:
		return False
	case fewest >= l.least && most <= l.most:
		return True
	default:
		return True | False
	}
}

// opposite are the other numbers, if they are without a gap. Numbers here are not
// negative.
func (l limits) opposite() (limits, bool) {
	switch {
	case l.most == unlimited && l.least > unlimitedBelow:
		return limits{unlimitedBelow, l.least - 1}, true
	case l.least <= 0 && l.most < unlimited:
		return limits{l.most + 1, unlimited}, true
	default:
		return limits{}, false
	}
}

// negate are the limits of the number with the other sign. One that has none with the other sign is not among
// them.
func (l limits) negate() limits {
	result := limits{unlimitedBelow, unlimited}
	if l.most != unlimited {
		result.least = -max(l.most, -math.MaxInt64)
	}
	if l.least != unlimitedBelow {
		result.most = -l.least
	}
	return result
}

// orUnlimited are limits that are unlimited where others are.
func (l limits) orUnlimited(other limits) limits {
	if other.least == unlimitedBelow {
		l.least = unlimitedBelow
	}
	if other.most == unlimited {
		l.most = unlimited
	}
	return l
}

// divide are the limits of a number of which the multiple is within the limits. The factor is not zero, and small.
func (l limits) divide(factor int64) limits {
	if factor < 0 {
		return l.negate().divide(-factor)
	}
	if factor == 0 {
		if l.least <= 0 && l.most >= 0 {
			return limits{unlimitedBelow, unlimited}
		}
		return limits{unlimited, unlimitedBelow}
	}
	if l.least != unlimitedBelow {
		l.least = -floorOf(-l.least, factor)
	}
	if l.most != unlimited {
		l.most = floorOf(l.most, factor)
	}
	return l
}

// times are the limits of a number of which the quotient, rounded towards zero, is within the limits.
func (l limits) times(by int64) limits {
	if l.least != unlimitedBelow {
		if l.least = saturatedProduct(l.least, by); l.least <= 0 {
			l.least = saturated(l.least, 1-by)
		}
	}
	if l.most != unlimited {
		if l.most = saturatedProduct(l.most, by); l.most >= 0 {
			l.most = saturated(l.most, by-1)
		}
	}
	return l
}

// saturated adds, but not beyond what an int64 has room for.
func saturated(x, y int64) int64 {
	switch sum, ok := add(x, y); {
	case ok:
		return sum
	case y > 0:
		return math.MaxInt64
	default:
		return math.MinInt64
	}
}

func saturatedProduct(x, by int64) int64 {
	switch product, ok := multiply(x, by); {
	case ok:
		return product
	case x > 0:
		return unlimited
	default:
		return unlimitedBelow
	}
}

// floorOf is the quotient rounded down. The divisor is above zero.
func floorOf(x, by int64) int64 {
	quotient := x / by
	if x%by < 0 {
		quotient--
	}
	return quotient
}
