// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celset/celset/cel/tree"
)

// devices[0] is some device of the set: which one is not known before the set is
// complete, because devices of several requests need not be in the order of the
// tables. A condition that speaks of it is taken as one that speaks of any device, and
// may become what it may become for one of them.

// maxMembers is of how many such devices a condition may speak: all combinations are
// looked at.
const maxMembers = 2

// conjunct reads one of the conditions that must all be true.
func (a *analyzer) conjunct(expr ast.Expr) condition {
	names := make(map[int64]string)
	by := make(map[int64]ast.Expr)
	s := scope{}
	var slots []int
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		place, ok := a.memberAt(e, hidden)
		if !ok {
			return
		}
		if names[place] == "" {
			names[place] = a.normal.write.Name()
			slots = append(slots, a.newSlot())
			s = s.with(names[place], deviceIn(slots[len(slots)-1]))
		}
		by[e.ID()] = a.normal.write.Ident(names[place], a.normal.write.TypeOf(e))
	})
	if len(slots) == 0 || len(slots) > maxMembers {
		return a.condition(expr, scope{})
	}
	replaced, ok := a.normal.substituteParts(expr, by)
	if !ok {
		return open{}
	}
	a.normal.replace(expr, replaced, s)
	result := a.condition(replaced, s)
	for i := len(slots) - 1; i >= 0 && !isOpen(result); i-- {
		result = someMember{slots[i], slots[:i], result}
	}
	return result
}

// memberAt recognizes devices[n], n being a constant for sets of the size.
func (a *analyzer) memberAt(expr ast.Expr, hidden tree.Names) (place int64, ok bool) {
	if !tree.IsCall(expr, operators.Index) {
		return 0, false
	}
	list, index := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	if hidden.Has(devicesVariable) || !tree.IsIdent(list, devicesVariable) {
		return 0, false
	}
	for name := range variablesOf(index) {
		if name != devicesVariable {
			return 0, false
		}
	}
	n, ok := a.quantity(index, scope{}).(constant)
	return n.value, ok && n.value >= 0 && n.value < int64(a.setSize)
}

// someMember is a condition on one device of the set, not known which.
type someMember struct {
	slot int
	// others are the slots of other members, which are other devices.
	others []int
	holds  condition
}

// each calls f for the devices that it may be until f returns false. The device is
// chosen meanwhile.
func (n someMember) each(s *state, f func(device int) bool) {
	try := func(i int) (more bool) {
		if !s.spend() || slices.ContainsFunc(n.others, func(slot int) bool { return s.slots[slot] == i }) {
			return true
		}
		s.slots[n.slot] = i
		return f(i)
	}
	for i := range s.Chosen.All() {
		if !try(i) {
			return
		}
	}
	if s.Left <= 0 {
		return
	}
	possible := s.borrow(s.Domain)
	defer s.giveBack(possible)
	for i := range possible.All() {
		s.choose(i)
		more := try(i)
		s.unchoose(i)
		if !more {
			return
		}
	}
}

func (n someMember) bound(s *state) Outcome {
	var result Outcome
	n.each(s, func(int) bool {
		result |= n.holds.bound(s)
		return result != Open
	})
	if result == 0 {
		return Open
	}
	return result
}

// propagate removes the devices that make the condition surely false whichever device it
// speaks of.
func (n someMember) propagate(s *state) bool {
	before, reached := s.borrow(s.Domain), s.borrow(s.Domain)
	reached.Clear()
	removed, hypothetical := s.removed, s.hypothetical
	s.hypothetical = true
	holds := false
	n.each(s, func(i int) bool {
		now := s.borrow(s.Domain)
		if s.propagate(n.holds) && s.Domain.Count() >= s.Left {
			holds = true
			reached.Join(s.Domain)
			if before.Has(i) {
				reached.Add(i)
			}
		}
		s.Domain.SetTo(now)
		s.giveBack(now)
		return !holds || !before.IsWithin(reached)
	})
	s.removed, s.hypothetical = removed, hypothetical
	if holds && s.Left > 0 {
		s.keep(reached)
	}
	s.giveBack(before)
	s.giveBack(reached)
	return holds
}
