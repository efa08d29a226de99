// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/tree"
)

// devices[0] is some device of the set. Of the devices of one request the first is that with
// the lowest position, so that it is known which devices it may be; those of several requests need
// not be in the order of the tables. The same goes for what has an order of its own:
//
//	devices.map(d, d.row).sort()[2]    devices.sortBy(d, d.row)[2]
//
// A condition that speaks of such a device is taken as one that speaks of each that it may be,
// and may become what it may become for one of them.

// maxMembers is of how many such devices a condition may speak: all combinations are
// looked at.
const maxMembers = 2

// member is a device that an expression speaks of by its place.
type member struct {
	// order is what the devices are sorted by, nil for the order of the set.
	order *leaf
	place int64
	// of makes the part from the variable that stands for the device.
	of func(device ast.Expr) (ast.Expr, bool)
}

// conjunct reads one of the conditions that must all be true.
func (a *analyzer) conjunct(expr ast.Expr) condition {
	type at struct {
		order *leaf
		place int64
	}
	slots := make(map[at]int)
	var members []someMember
	by := make(map[int64]ast.Expr)
	s, ok := scope{}, true
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		m, is := a.memberAt(e, hidden)
		if !is {
			return
		}
		where := at{m.order, m.place}
		if _, known := slots[where]; !known {
			slots[where] = a.newSlot()
			members = append(members, someMember{slot: slots[where], order: m.order, place: m.place, size: a.setSize, sorted: m.order != nil || a.ascending})
			s = s.with(memberName(slots[where]), deviceIn(slots[where]))
		}
		part, fits := m.of(a.normal.write.Ident(memberName(slots[where]), types.DynType))
		by[e.ID()], ok = part, ok && fits
	})
	if len(members) == 0 || len(members) > maxMembers {
		return a.condition(expr, scope{})
	}
	replaced, fits := a.normal.substituteParts(expr, by)
	if !ok || !fits {
		return open{}
	}
	a.normal.replace(expr, replaced, s)
	holds := a.condition(replaced, s)
	result := holds
	for i := len(members) - 1; i >= 0 && !isOpen(result); i-- {
		members[i].others, members[i].holds = members[:i], result
		result = members[i]
	}
	if distance, ok := a.sortedDistance(members, holds, result); ok {
		return distance
	}
	return result
}

// memberName is that of the variable for a member. No expression has such a name.
func memberName(slot int) string { return fmt.Sprintf("#member%d", slot) }

// memberAt recognizes list[n], n being a constant for sets of the size and the list all devices,
// sorted or not, or sorted values of them.
func (a *analyzer) memberAt(expr ast.Expr, hidden tree.Names) (m member, ok bool) {
	if !tree.IsCall(expr, operators.Index) {
		return member{}, false
	}
	list, index := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	for name := range variablesOf(expr) {
		if hidden.Has(name) && device.IsSet(name) {
			return member{}, false
		}
	}
	for name := range variablesOf(index) {
		if !device.IsSet(name) {
			return member{}, false
		}
	}
	n, ok := a.quantity(index, scope{}).(constant)
	if !ok || n.value < 0 || n.value >= int64(a.setSize) {
		return member{}, false
	}
	m.place = n.value
	list = a.normal.reduce(list, scope{})
	switch {
	case list.Kind() == ast.IdentKind && device.IsSet(list.AsIdent()):
		m.of = func(device ast.Expr) (ast.Expr, bool) { return a.withType(device, expr), true }
		return m, true
	case tree.IsCall(list, "sort") && list.AsCall().IsMemberFunction():
		return a.sortedAt(m, list.AsCall().Target())
	case tree.IsCall(list, "@sortByAssociatedKeys") && list.AsCall().IsMemberFunction() && a.isDevices(list.AsCall().Target()):
		m, ok = a.sortedAt(m, list.AsCall().Args()[0])
		m.of = func(device ast.Expr) (ast.Expr, bool) { return a.withType(device, expr), true }
		return m, ok
	default:
		return member{}, false
	}
}

// sortedAt is a place among the sorted values of all devices.
func (a *analyzer) sortedAt(m member, list ast.Expr) (member, bool) {
	values, ok := a.mapped(list, scope{})
	if !ok || values.element == nil {
		return member{}, false
	}
	m.order, ok = values.column()
	m.of = func(device ast.Expr) (ast.Expr, bool) {
		return a.normal.substitute(values.element, values.device.name, a.withNamed(device, values.device.of), false)
	}
	return m, ok
}

func (a *analyzer) isDevices(expr ast.Expr) bool {
	list, ok := a.deviceList(expr, scope{})
	_, all := list.(allDevices)
	return ok && all
}

// withType is a variable with the type of another part.
func (a *analyzer) withType(device, as ast.Expr) ast.Expr {
	return a.withNamed(device, a.normal.write.TypeOf(as))
}

func (a *analyzer) withNamed(device ast.Expr, t *types.Type) ast.Expr {
	return a.normal.write.Ident(device.AsIdent(), t)
}

// someMember is a condition on one device of the set, at some place.
type someMember struct {
	slot  int
	order *leaf
	place int64
	size  int
	// sorted: it is known which devices may be at the place.
	sorted bool
	// others are members too. Those in the same order are other devices.
	others []someMember
	holds  condition
}

// each calls f for the devices that it may be until f returns false. The device is
// chosen meanwhile. It is false if that is not known.
func (n someMember) each(s *state, f func(device int) bool) bool {
	candidates, ok := n.candidates(s)
	if !ok {
		return false
	}
	defer s.giveBack(candidates)
	for i := range candidates.All() {
		if !s.spend() || slices.ContainsFunc(n.others, func(o someMember) bool { return o.order == n.order && s.slots[o.slot] == i }) {
			continue
		}
		s.slots[n.slot] = i
		if s.Chosen.Has(i) {
			if !f(i) {
				return true
			}
			continue
		}
		s.choose(i)
		more := f(i)
		s.unchoose(i)
		if !more {
			return true
		}
	}
	return true
}

func (n someMember) bound(s *state) Outcome {
	var result Outcome
	known := n.each(s, func(int) bool {
		result |= n.holds.bound(s)
		return result != Open
	})
	if result == 0 || !known {
		return Open
	}
	return result
}

// propagate removes the devices that make the condition surely false whichever device it
// speaks of.
func (n someMember) propagate(s *state) status {
	before, reached := s.borrow(s.Domain), s.borrow(s.Domain)
	reached.Clear()
	removed, hypothetical := s.removed, s.hypothetical
	s.hypothetical = true
	holds := false
	known := n.each(s, func(i int) bool {
		now := s.borrow(s.Domain)
		if s.propagate(n.holds) != failed && s.Domain.Count() >= s.Left {
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
	if known && holds && s.Left > 0 {
		s.keep(reached)
	}
	s.giveBack(before)
	s.giveBack(reached)
	if !holds && known {
		return failed
	}
	return noFix
}

// A device may be at a place if there can be as many before it, and as many behind it, as the
// set will have there: not too many are chosen, and enough are possible.

// candidates are the devices that may be at the place, in a set to be given back. It is false if
// the devices can't be put in order.
func (n someMember) candidates(s *state) (bitset.Set, bool) {
	if !n.sorted {
		candidates := s.borrow(s.Chosen)
		if s.Left > 0 {
			candidates.Join(s.Domain)
		}
		return candidates, true
	}
	if n.order == nil {
		return n.byPosition(s), true
	}
	c := s.column(n.order)
	if c == nil || !c.groups.sorted || !s.Chosen.IsWithin(c.groups.known) || s.Left > 0 && !s.Domain.IsWithin(c.groups.known) {
		return nil, false
	}
	return n.byValue(s, &c.groups), true
}

// room counts devices that are chosen, and that are possible.
type room struct{ chosen, possible int }

// holds reports whether count devices can be there, if left devices are to be added.
func (r room) holds(count, left int) bool {
	return r.chosen <= count && r.chosen+min(left, r.possible) >= count
}

// byPosition: no two devices are at the same position.
func (n someMember) byPosition(s *state) bitset.Set {
	candidates := s.borrow(s.Chosen)
	candidates.Clear()
	before, behind := room{}, room{chosen: s.Chosen.Count(), possible: s.Domain.Count()}
	if s.Left <= 0 {
		behind.possible = 0
	}
	for w := range s.Chosen {
		for word := s.Chosen[w] | s.Domain[w]; word != 0; word &= word - 1 {
			position := w*64 + bits.TrailingZeros64(word)
			chosen, left := s.Chosen.Has(position), s.Left
			if chosen {
				behind.chosen--
			} else if s.Left > 0 {
				behind.possible--
				left--
			}
			if (chosen || s.Left > 0) && before.holds(int(n.place), left) && behind.holds(n.size-1-int(n.place), left) {
				candidates.Add(position)
			}
			if chosen {
				before.chosen++
			} else if s.Left > 0 {
				before.possible++
			}
		}
	}
	for _, o := range n.others {
		if o.sorted && o.order == nil {
			n.besides(candidates, s.slots[o.slot], o.place)
		}
	}
	return candidates
}

// besides leaves out the devices on the wrong side of another member.
func (n someMember) besides(candidates bitset.Set, other int, place int64) {
	for i := range candidates.All() {
		if i < other != (n.place < place) {
			candidates.Remove(i)
		}
	}
}

// byValue: of devices with the same value any may come first.
func (n someMember) byValue(s *state, g *groups) bitset.Set {
	candidates := s.borrow(s.Chosen)
	candidates.Clear()
	possible := func(of bitset.Set) int {
		if s.Left <= 0 {
			return 0
		}
		return s.Domain.CountAnd(of)
	}
	var before room
	behind := room{s.Chosen.Count(), possible(s.Domain)}
	for _, members := range g.members {
		here := room{s.Chosen.CountAnd(members), possible(members)}
		behind.chosen -= here.chosen
		behind.possible -= here.possible
		if n.isPossible(before, here, behind, s.Left) {
			candidates.Join(members)
		}
		before.chosen += here.chosen
		before.possible += here.possible
	}
	all := s.borrow(s.Chosen)
	if s.Left > 0 {
		all.Join(s.Domain)
	}
	candidates.Keep(all)
	s.giveBack(all)
	return candidates
}

// isPossible reports whether a device with a value may be at the place, with those that have
// smaller ones, the same, and greater ones.
func (n someMember) isPossible(before, here, behind room, left int) bool {
	place, rest := int(n.place), n.size-1-int(n.place)
	most := func(there room) int { return there.chosen + here.chosen + min(left, there.possible+here.possible) - 1 }
	return here.chosen+here.possible > 0 && before.chosen <= place && behind.chosen <= rest &&
		most(before) >= place && most(behind) >= rest
}
