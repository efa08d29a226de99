// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// WithLimits replaces a comparison of a quantity with a constant by a condition that propagates. If there is no such condition,
// it returns the comparison. The builder is nil for a condition that only one search uses.
func (b *Builder) WithLimits(c Comparison, of propagate.Quantity, l outcome.Limits) propagate.Condition {
	switch of := of.(type) {
	case size:
		if leaf, simpler, ok := of.ofDevices(); ok {
			return assuming{behaves{leaf, propagate.Failing}, b.WithLimits(c, simpler, l), c}
		}
		if p, slot, ok := predicateOver(of.list, 0, nil); ok {
			return &cardinality{predicate: p, slot: slot, Limits: l, general: c}
		}
		if f, isFiltered := of.list.(filtered); isFiltered {
			if _, all := f.list.(AllDevices); all {
				if each, ok := b.ofEach(f, l, c); ok {
					return each
				}
				return newGeneralCardinality(f.slot, f.keeps, l, c)
			}
		}
	case greatest:
		return b.extreme(c, of, l)
	case total:
		if sum, ok := b.newSum([]term{{1, of}}, l, modulus{}, c); ok {
			return sum
		}
		return newPairs(of, l, c)
	case arithmetic:
		if of.operation.Name == outcome.Remainder.Name || of.operation.Name == outcome.Division.Name {
			return b.quotient(c, of, l)
		}
		if leaf, ok := spanOf(of); ok {
			return b.newSpan(leaf, l, c)
		}
		if leaf, ok := spanOf(arithmetic{of.operation, of.right, of.left}); ok {
			return b.newSpan(leaf, l.Negate(), c)
		}
	}
	return c
}

// ofEach recognizes a filter that must keep as many devices as the set has. It returns the condition that all devices satisfy
// the filter.
func (b *Builder) ofEach(f filtered, l outcome.Limits, general propagate.Condition) (propagate.Condition, bool) {
	c, ok := f.keeps.(*cardinality)
	if !ok || b == nil || b.SetSize == 0 || l.Least != int64(b.SetSize) || l.Most < l.Least {
		return nil, false
	}
	return assuming{exact{c.predicate}, NewForAll(AllDevices{}, f.slot, f.keeps), general}, true
}

// If numbers of devices are computed for each device, a condition on the greatest or smallest number becomes a condition on
// each number (all) or on some number (exists):
//
//	devices.map(d, devices.filter(o, linked(d, o)).size()).min() >= 2    devices.all(d, devices.filter(o, linked(d, o)).size() >= 2)

// extreme converts limits for the greatest or smallest number of devices. It returns c for other quantities.
func (b *Builder) extreme(c Comparison, of greatest, l outcome.Limits) propagate.Condition {
	p, ok := CountedBy(of.Mapped)
	if !ok || b == nil {
		return c
	}
	// For a greatest number, each number must be at most Most, and one number must be at least Least.
	each, one := outcome.Limits{Least: outcome.UnlimitedBelow, Most: l.Most}, outcome.Limits{Least: l.Least, Most: outcome.Unlimited}
	if of.Negated {
		each, one = outcome.Limits{Least: l.Least, Most: outcome.Unlimited}, outcome.Limits{Least: outcome.UnlimitedBelow, Most: l.Most}
	}
	var result propagate.Condition = verdict{outcome.True}
	if each != (outcome.Limits{Least: outcome.UnlimitedBelow, Most: outcome.Unlimited}) {
		result = NewForAll(AllDevices{}, of.Slot, b.sizeWithin(of.Value, each))
	}
	if one != (outcome.Limits{Least: outcome.UnlimitedBelow, Most: outcome.Unlimited}) {
		result = b.NewAnd(result, NewExists(AllDevices{}, of.Slot, b.sizeWithin(of.Value, one)))
	}
	return assuming{exact{p}, result, c}
}

// sizeWithin returns the condition that a number of devices is within limits.
func (b *Builder) sizeWithin(q propagate.Quantity, l outcome.Limits) propagate.Condition {
	var general propagate.Condition = verdict{outcome.True}
	if l.Least != outcome.UnlimitedBelow {
		general = Comparison{outcome.LessOrEqual, Constant{l.Least}, q}
	}
	if l.Most != outcome.Unlimited {
		general = Comparison{outcome.LessOrEqual, q, Constant{l.Most}}
	}
	c, _ := general.(Comparison)
	return b.WithLimits(c, q, l)
}

// quotient converts a comparison of sum/constant or sum%constant, with a positive constant, to limits of the sum. It returns c
// for other quantities.
func (b *Builder) quotient(c Comparison, of arithmetic, l outcome.Limits) propagate.Condition {
	by, ok := of.right.(Constant)
	sum, linear := linearOf(of.left)
	if !ok || !linear || by.Value <= 0 || by.Value > maxFactor || sum.constant != 0 {
		return c
	}
	m := modulus{}
	if of.operation.Name == outcome.Remainder.Name {
		if l.Least != l.Most || l.Least < 0 || l.Least >= by.Value {
			return c
		}
		m, l = modulus{by.Value, l.Least}, outcome.Limits{Least: outcome.UnlimitedBelow, Most: outcome.Unlimited}
		if m.remainder > 0 {
			// CEL's remainder of a negative number is zero or negative, so a positive remainder needs a positive sum.
			l.Least = 1
		}
	} else {
		l = l.Times(by.Value)
	}
	if is, ok := b.newSum(sum.terms, l, m, c); ok {
		return is
	}
	return c
}
