// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// linear is a constant plus a sum of quantities with factors. A comparison of two such sums is normalized: all quantities move
// to one side. So these spellings have the same form:
//
//	devices.map(d, d.row).max() == devices.map(d, d.row).min() + 3
//	devices.map(d, d.row).max() - devices.map(d, d.row).min() + 1 == devices.size()
//	devices.map(d, d.row).distinct().size() * 8 == devices.size()
type linear struct {
	terms    []term
	constant int64
}

type term struct {
	factor int64
	of     propagate.Quantity
}

const (
	// maxFactor limits the factors of a sum, and maxTerms the number of terms. Within these limits a sum overflows only if a
	// value is far from zero ([outcome.IsFar]).
	maxFactor, maxTerms = 1 << 10, 4
	// MaxConstant limits the absolute value of the constant of a sum.
	MaxConstant = 1 << 60
)

// linearOf converts a quantity to a linear sum. It returns false if a factor or the constant is too large.
func linearOf(q propagate.Quantity) (linear, bool) {
	switch q := q.(type) {
	case Constant:
		return linear{constant: q.Value}, -MaxConstant < q.Value && q.Value < MaxConstant
	case propagate.Value:
		if base := q.Base; base != nil {
			return linear{terms: []term{{1, propagate.Value{Leaf: base, Slots: q.Slots}}}, constant: q.Added}, -MaxConstant < q.Added && q.Added < MaxConstant
		}
	case arithmetic:
		left, ok := linearOf(q.left)
		right, too := linearOf(q.right)
		if !ok || !too {
			return linear{}, false
		}
		switch {
		case q.operation.Name == outcome.Addition.Name:
			return left.plus(1, right)
		case q.operation.Name == outcome.Subtraction.Name:
			return left.plus(-1, right)
		case q.operation.Name == outcome.Multiplication.Name && len(left.terms) == 0:
			return linear{}.plus(left.constant, right)
		case q.operation.Name == outcome.Multiplication.Name && len(right.terms) == 0:
			return linear{}.plus(right.constant, left)
		}
	}
	return linear{terms: []term{{1, q}}}, !propagate.IsOpen(q)
}

// plus adds factor times another sum. It returns false if a factor, the constant or the number of terms becomes too large.
func (l linear) plus(factor int64, other linear) (linear, bool) {
	product, ok := outcome.Multiply(factor, other.constant)
	if !ok || factor < -maxFactor || factor > maxFactor {
		return linear{}, false
	}
	sum, ok := outcome.Add(l.constant, product)
	result := linear{terms: append([]term{}, l.terms...), constant: sum}
	for _, t := range other.terms {
		result.add(term{factor * t.factor, t.of})
	}
	for _, t := range result.terms {
		ok = ok && -maxFactor <= t.factor && t.factor <= maxFactor
	}
	return result, ok && -MaxConstant < sum && sum < MaxConstant && len(result.terms) <= maxTerms
}

func (l *linear) add(added term) {
	for i := range l.terms {
		if isSame(l.terms[i].of, added.of) {
			l.terms[i].factor += added.factor
			return
		}
	}
	l.terms = append(l.terms, added)
}

// isSame reports whether two quantities are the same: the same extreme or sum of one column, or the same value.
func isSame(a, b propagate.Quantity) bool {
	switch a := a.(type) {
	case greatest:
		b, is := b.(greatest)
		return is && a.Negated == b.Negated && isSameColumn(a.Mapped, b.Mapped)
	case total:
		b, is := b.(total)
		return is && isSameColumn(a.Mapped, b.Mapped)
	case propagate.Value:
		b, is := b.(propagate.Value)
		return is && len(a.Slots) == 1 && len(b.Slots) == 1 && a.Leaf == b.Leaf && a.Slots[0] == b.Slots[0]
	default:
		return false
	}
}

func isSameColumn(a, b Mapped) bool {
	of, ok := a.Column()
	and, both := b.Column()
	return ok && both && of == and
}

// linearLimits converts a comparison of two linear sums to limits for one sum of terms.
func linearLimits(c Comparison) (terms []term, l outcome.Limits, ok bool) {
	left, ok := linearOf(c.Left)
	right, too := linearOf(c.Right)
	if !ok || !too {
		return nil, l, false
	}
	sum, ok := left.plus(-1, right)
	l = outcome.Limits{Least: outcome.UnlimitedBelow, Most: -sum.constant}
	switch c.Relation {
	case outcome.Equal:
		l.Least = -sum.constant
	case outcome.Less:
		l.Most--
	}
	return sum.terms, l, ok
}
