// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/tree"
)

// Macros with two variables go over devices and their places. Places are not known
// before the set is complete, but two devices are at the same place only if they are
// the same, and of two others one comes first.

// withPlace adds the variable that stands for the place of the device among all devices.
func (s scope) withPlace(c ast.ComprehensionExpr, list deviceList, slot int) scope {
	if _, all := list.(allDevices); all && c.HasIterVar2() {
		return s.with(c.IterVar(), meaning{aPlace, slot}).with(c.IterVar2(), deviceIn(slot))
	}
	return s
}

// placedAt is the slot of the device whose place an identifier stands for.
func placedAt(expr ast.Expr, s scope) (slot int, ok bool) {
	if expr.Kind() != ast.IdentKind {
		return 0, false
	}
	is := s[expr.AsIdent()]
	return is.slot, is.what == aPlace
}

// comparedPlaces reads a comparison of two places.
func comparedPlaces(r relation, left, right ast.Expr, s scope) (condition, bool) {
	l, ok := placedAt(left, s)
	m, both := placedAt(right, s)
	switch {
	case !ok || !both:
		return nil, false
	case r == equal:
		return identity{l, m}, true
	default:
		return before{l, m, outcomeOf(r == lessOrEqual)}, true
	}
}

// before compares the places of two devices.
type before struct {
	left, right int
	// same is the outcome if the two are the same.
	same Outcome
}

func (n before) bound(s *state) Outcome {
	if s.slots[n.left] == s.slots[n.right] {
		return n.same
	}
	return True | False
}

// between is a number that is not known.
type between struct{ least, most int64 }

func (n between) number(*state) number { return number{least: n.least, most: n.most} }

// A condition on pairs of devices, one before the other, asks about each pair in one
// order, which is not known. It can't be true if it is false in either order:
//
//	devices.all(i, a, devices.all(j, b, i >= j || apart(a, b)))
//	devices.all(a, devices.all(b, a == b || apart(a, b) || apart(b, a)))

// ordered is a condition on pairs of devices in their order.
type ordered struct {
	condition
	// either is false only if the condition is.
	either condition
}

func (n ordered) bound(s *state) Outcome {
	if n.either.bound(s) == False {
		return False
	}
	return n.condition.bound(s)
}

func (n ordered) propagate(s *state) bool { return s.propagate(n.either) && s.propagate(n.condition) }

// negation: of the opposite nothing is known in either order.
func (n ordered) negation() condition { return newNot(n.condition) }

// inEitherOrder reads what follows from a condition on pairs of devices. Within such a
// condition it does not, since reading everything twice at each level is too much.
func (a *analyzer) inEitherOrder(expr ast.Expr, s scope) (condition, bool) {
	for _, is := range s {
		if is.what == aPlace {
			return nil, false
		}
	}
	outer, body, ok := a.allPlaced(expr, s)
	if !ok {
		return nil, false
	}
	inner, body, ok := a.allPlaced(body, s)
	if !ok {
		return nil, false
	}
	i, d, j, o := outer.IterVar(), outer.IterVar2(), inner.IterVar(), inner.IterVar2()
	if sets.New(i, d, j, o).Len() < 4 || len(placesCompared(body, i, j)) == 0 {
		return nil, false
	}
	device := a.normal.typeOf(o, inner)
	assumed := func(sign int) ast.Expr { return assuming(a.normal, body, i, j, sign, &ok) }
	swapped := func(body ast.Expr) ast.Expr {
		result, fits := a.normal.substituteAll(body, map[string]ast.Expr{
			d: a.normal.write.Ident(o, device), o: a.normal.write.Ident(d, device), i: a.normal.write.Ident(j, types.IntType), j: a.normal.write.Ident(i, types.IntType),
		})
		ok = ok && fits
		return result
	}
	same := a.normal.write.Equals(a.normal.write.Ident(d, device), a.normal.write.Ident(o, device))
	either := a.normal.write.Conditional(types.BoolType, same, assumed(0), a.normal.write.Or(
		a.normal.write.And(assumed(-1), swapped(assumed(1))), a.normal.write.And(assumed(1), swapped(assumed(-1)))))
	if !ok {
		return nil, false
	}
	result, ok := a.normal.substituteParts(expr, map[int64]ast.Expr{body.ID(): either})
	if !ok {
		return nil, false
	}
	a.normal.require(result, s)
	return a.condition(result, s), true
}

// allPlaced recognizes devices.all(i, d, body).
func (a *analyzer) allPlaced(expr ast.Expr, s scope) (c ast.ComprehensionExpr, body ast.Expr, ok bool) {
	if expr.Kind() != ast.ComprehensionKind {
		return nil, nil, false
	}
	c = expr.AsComprehension()
	is, body := tree.QuantifierOf(c)
	if is != tree.All || !c.HasIterVar2() || c.IterRange().Kind() != ast.IdentKind {
		return nil, nil, false
	}
	_, ok = a.deviceList(c.IterRange(), s)
	return c, body, ok
}

// placesCompared finds the comparisons of two places: for each its operator, turned such
// that the first place stands on the left.
func placesCompared(body ast.Expr, first, second string) map[int64]string {
	flipped := map[string]string{
		operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals, operators.Less: operators.Greater,
		operators.LessEquals: operators.GreaterEquals, operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
	}
	found := make(map[int64]string)
	tree.Visit(body, func(e ast.Expr, hidden tree.Names) {
		if e.Kind() != ast.CallKind || flipped[e.AsCall().FunctionName()] == "" {
			return
		}
		is := func(e ast.Expr, name string) bool {
			return !hidden.Has(name) && tree.IsIdent(e, name)
		}
		switch left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]; {
		case is(left, first) && is(right, second):
			found[e.ID()] = e.AsCall().FunctionName()
		case is(left, second) && is(right, first):
			found[e.ID()] = flipped[e.AsCall().FunctionName()]
		}
	})
	return found
}

// assuming writes a condition for the case that the first place is before the second
// one, the same or behind it.
func assuming(n *normalizer, body ast.Expr, first, second string, sign int, ok *bool) ast.Expr {
	holds := map[string]bool{
		operators.Equals: sign == 0, operators.NotEquals: sign != 0, operators.Less: sign < 0,
		operators.LessEquals: sign <= 0, operators.Greater: sign > 0, operators.GreaterEquals: sign >= 0,
	}
	by := make(map[int64]ast.Expr)
	for id, operator := range placesCompared(body, first, second) {
		by[id] = n.write.Literal(types.Bool(holds[operator]))
	}
	result, fits := n.substituteParts(body, by)
	*ok = *ok && fits
	return result
}
