// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
)

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

// withLimits replaces a comparison of a quantity with a constant by a condition that
// can be propagated, where there is one. There is no analyzer for a condition of one search.
func (a *analyzer) withLimits(c comparison, of quantity, l limits) condition {
	switch of := of.(type) {
	case size:
		if leaf, simpler, ok := of.ofDevices(); ok {
			return assuming{behaves{leaf, failing}, a.withLimits(c, simpler, l), c}
		}
		if p, slot, ok := predicateOver(of.list, 0, nil); ok {
			return &cardinality{predicate: p, slot: slot, limits: l, general: c}
		}
		if f, isFiltered := of.list.(filtered); isFiltered {
			if _, all := f.list.(allDevices); all {
				if each, ok := a.ofEach(f, l, c); ok {
					return each
				}
				return newGeneralCardinality(f.slot, f.keeps, l, c)
			}
		}
	case greatest:
		return a.extreme(c, of, l)
	case total:
		if sum, ok := a.newSum([]term{{1, of}}, l, modulus{}, c); ok {
			return sum
		}
		return newPairs(of, l, c)
	case arithmetic:
		if of.operation.name == remainder.name || of.operation.name == division.name {
			return a.quotient(c, of, l)
		}
		if leaf, ok := spanOf(of); ok {
			return a.newSpan(leaf, l, c)
		}
		if leaf, ok := spanOf(arithmetic{of.operation, of.right, of.left}); ok {
			return a.newSpan(leaf, l.negate(), c)
		}
	}
	return c
}

// ofEach is the condition that as many devices satisfy a condition as a set has: all of them do.
func (a *analyzer) ofEach(f filtered, l limits, general condition) (condition, bool) {
	c, ok := f.keeps.(*cardinality)
	if !ok || a == nil || a.setSize == 0 || l.least != int64(a.setSize) || l.most < l.least {
		return nil, false
	}
	return assuming{exact{c.predicate}, newForAll(allDevices{}, f.slot, f.keeps), general}, true
}
