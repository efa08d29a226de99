// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// linear is a sum of quantities, each times a factor, and a constant. Comparisons of such sums are written in one way, with all
// quantities on one side, whichever way people write them:
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
	of     quantity
}

const (
	// maxFactor and maxTerms are how large factors may be, and how many terms are read, so that nothing overflows unless a
	// value is far from zero ([isFar]).
	maxFactor, maxTerms = 1 << 10, 4
	// maxConstant is how large a constant may be.
	maxConstant = 1 << 60
)

// linearOf reads a quantity. It is false if factors or constants are too large.
func linearOf(q quantity) (linear, bool) {
	switch q := q.(type) {
	case constant:
		return linear{constant: q.value}, -maxConstant < q.value && q.value < maxConstant
	case value:
		if base := q.base; base != nil {
			return linear{terms: []term{{1, value{base, q.slots}}}, constant: q.added}, -maxConstant < q.added && q.added < maxConstant
		}
	case arithmetic:
		left, ok := linearOf(q.left)
		right, too := linearOf(q.right)
		if !ok || !too {
			return linear{}, false
		}
		switch {
		case q.operation.name == addition.name:
			return left.plus(1, right)
		case q.operation.name == subtraction.name:
			return left.plus(-1, right)
		case q.operation.name == multiplication.name && len(left.terms) == 0:
			return linear{}.plus(left.constant, right)
		case q.operation.name == multiplication.name && len(right.terms) == 0:
			return linear{}.plus(right.constant, left)
		}
	}
	return linear{terms: []term{{1, q}}}, !isOpen(q)
}

// plus adds another sum times a factor.
func (l linear) plus(factor int64, other linear) (linear, bool) {
	product, ok := multiply(factor, other.constant)
	if !ok || factor < -maxFactor || factor > maxFactor {
		return linear{}, false
	}
	sum, ok := add(l.constant, product)
	result := linear{terms: append([]term{}, l.terms...), constant: sum}
	for _, t := range other.terms {
		result.add(term{factor * t.factor, t.of})
	}
	for _, t := range result.terms {
		ok = ok && -maxFactor <= t.factor && t.factor <= maxFactor
	}
	return result, ok && -maxConstant < sum && sum < maxConstant && len(result.terms) <= maxTerms
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

// isSame reports whether two quantities are surely the same: extremes or sums of the same column, or the same value.
func isSame(a, b quantity) bool {
	switch a := a.(type) {
	case greatest:
		b, is := b.(greatest)
		return is && a.negated == b.negated && isSameColumn(a.mapped, b.mapped)
	case total:
		b, is := b.(total)
		return is && isSameColumn(a.mapped, b.mapped)
	case value:
		b, is := b.(value)
		return is && len(a.slots) == 1 && len(b.slots) == 1 && a.leaf == b.leaf && a.slots[0] == b.slots[0]
	default:
		return false
	}
}

func isSameColumn(a, b mapped) bool {
	of, ok := a.column()
	and, both := b.column()
	return ok && both && of == and
}

// linearLimits reads a comparison of two linear sums as limits of one sum of terms.
func linearLimits(c comparison) (terms []term, l limits, ok bool) {
	left, ok := linearOf(c.left)
	right, too := linearOf(c.right)
	if !ok || !too {
		return nil, l, false
	}
	sum, ok := left.plus(-1, right)
	l = limits{unlimitedBelow, -sum.constant}
	switch c.relation {
	case equal:
		l.least = -sum.constant
	case less:
		l.most--
	}
	return sum.terms, l, ok
}

// linearComparison reads a comparison of two linear sums as limits of one quantity, or of a distance. It is false if it knows
// none of the quantities.
func (a *analyzer) linearComparison(c comparison) (condition, bool) {
	terms, l, ok := linearLimits(c)
	if !ok {
		return nil, false
	}
	var present premise
	rest := make([]term, 0, len(terms))
	for _, t := range terms {
		leaf, ok := valuesOfAll(t.of)
		if !ok {
			rest = append(rest, t)
			continue
		}
		shift := -t.factor * int64(a.setSize)
		l = limits{l.least + shift, l.most + shift}.orUnlimited(l)
		present = together(present, behaves{leaf, failing})
	}
	is, ok := a.ofTerms(rest, l, c)
	if ok && present != nil {
		return assuming{present, is, c}, true
	}
	return is, ok
}

// valuesOfAll recognizes the size of a list with a value of each device: it is a constant unless a value fails.
func valuesOfAll(q quantity) (*leaf, bool) {
	n, ok := q.(size)
	if !ok {
		return nil, false
	}
	values, ok := n.list.(valued)
	if !ok {
		return nil, false
	}
	return values.column()
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

// ofTerms is the condition that a sum of terms is within limits. It is false if it knows none of the quantities.
func (a *analyzer) ofTerms(terms []term, l limits, c comparison) (condition, bool) {
	if len(terms) == 1 && isCount(terms[0].of) {
		return a.withLimits(c, terms[0].of, l.divide(terms[0].factor)), true
	}
	if leaf, factor, ok := distanceIn(terms); ok {
		return assuming{behaves{leaf, far}, a.newSpan(leaf, l.divide(factor), c), oneValueIn(leaf, l, c)}, true
	}
	return a.newSum(terms, l, modulus{}, c)
}

// oneValueIn is the condition that the greatest and the smallest value are the same, of any type that has an order.
func oneValueIn(l *leaf, distance limits, general condition) condition {
	if distance != (limits{0, 0}) {
		return general
	}
	one := comparison{equal, distinctSize{l, allDevices{}}, constant{1}}
	return assuming{sorted{l}, one, general}
}

// distanceIn recognizes "factor*max - factor*min" of a column.
func distanceIn(terms []term) (l *leaf, factor int64, ok bool) {
	if len(terms) != 2 || terms[0].factor != -terms[1].factor || terms[0].factor == 0 {
		return nil, 0, false
	}
	for i := range terms {
		if l, ok := spanOf(arithmetic{subtraction, terms[i].of, terms[1-i].of}); ok {
			return l, terms[i].factor, true
		}
	}
	return nil, 0, false
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

// floorOf is the quotient rounded down. The divisor is above zero.
func floorOf(x, by int64) int64 {
	quotient := x / by
	if x%by < 0 {
		quotient--
	}
	return quotient
}

// quotient reads a comparison of a sum that is divided by a constant above zero, or of its remainder. It is c for anything else.
func (a *analyzer) quotient(c comparison, of arithmetic, l limits) condition {
	by, ok := of.right.(constant)
	sum, linear := linearOf(of.left)
	if !ok || !linear || by.value <= 0 || by.value > maxFactor || sum.constant != 0 {
		return c
	}
	m := modulus{}
	if of.operation.name == remainder.name {
		if l.least != l.most || l.least < 0 || l.least >= by.value {
			return c
		}
		m, l = modulus{by.value, l.least}, limits{unlimitedBelow, unlimited}
		if m.remainder > 0 {
			// That of a number below zero is not above zero.
			l.least = 1
		}
	} else {
		l = l.times(by.value)
	}
	if is, ok := a.newSum(sum.terms, l, m, c); ok {
		return is
	}
	return c
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
