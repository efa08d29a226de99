// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// devices[0] is one device of the set. If all devices belong to one request, it is the device with the lowest index in the
// tables, which limits the candidates. Devices of several requests may be in another order, so any device is a candidate.
// Sorted lists limit the candidates in the same way:
//
//	devices.map(d, d.row).sort()[2]    devices.sortBy(d, d.row)[2]
//
// The condition is evaluated for every candidate. Its outcome is the union of the outcomes for all candidates.

// maxMembers is the maximum number of different members in one condition, because all combinations of candidates are evaluated.
const maxMembers = 2

// A member is a device at a fixed position of a list, such as devices[0].
type member struct {
	// order is the leaf that sorts the devices. It is nil if the list has the order of the set.
	order *propagate.Leaf
	place int64
	// of returns the expression that replaces list[n]: the given device or, in a list of values, the value of this device.
	of func(device ast.Expr) (ast.Expr, bool)
}

// conjunct converts one conjunct. It replaces members in the conjunct by variables.
func (a *analyzer) conjunct(expr ast.Expr) propagate.Condition {
	type at struct {
		order *propagate.Leaf
		place int64
	}
	slots := make(map[at]int)
	var members []condition.SomeMember
	by := make(map[int64]ast.Expr)
	s, ok := normal.Scope{}, true
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		m, is := a.memberAt(e, hidden)
		if !is {
			return
		}
		where := at{m.order, m.place}
		if _, known := slots[where]; !known {
			slots[where] = a.newSlot()
			members = append(members, condition.SomeMember{Slot: slots[where], Order: m.order, Place: m.place, Size: a.SetSize, Sorted: m.order != nil || a.Ascending})
			s = s.With(memberName(slots[where]), normal.DeviceIn(slots[where]))
		}
		part, fits := m.of(a.normal.Write.Ident(memberName(slots[where]), types.DynType))
		by[e.ID()], ok = part, ok && fits
	})
	if len(members) == 0 || len(members) > maxMembers {
		return a.condition(expr, normal.Scope{})
	}
	replaced, fits := a.normal.SubstituteParts(expr, by)
	if !ok || !fits {
		return propagate.Open{}
	}
	a.normal.Replace(expr, replaced, s)
	holds := a.condition(replaced, s)
	result := holds
	for i := len(members) - 1; i >= 0 && !propagate.IsOpen(result); i-- {
		members[i].Others, members[i].Holds = members[:i], result
		result = members[i]
	}
	if distance, ok := a.SortedDistance(members, holds, result); ok {
		return distance
	}
	return result
}

// memberName returns the name of the variable for a member. Users can't write this name in an expression.
func memberName(slot int) string { return fmt.Sprintf("#member%d", slot) }

// memberAt recognizes list[n]. The index n must be constant for sets of one size. The list must be all devices, perhaps sorted,
// or the sorted values of all devices.
func (a *analyzer) memberAt(expr ast.Expr, hidden tree.Names) (m member, ok bool) {
	if !tree.IsCall(expr, operators.Index) {
		return member{}, false
	}
	list, index := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	for name := range normal.VariablesOf(expr) {
		if hidden.Has(name) && device.IsSet(name) {
			return member{}, false
		}
	}
	for name := range normal.VariablesOf(index) {
		if !device.IsSet(name) {
			return member{}, false
		}
	}
	n, ok := a.quantity(index, normal.Scope{}).(condition.Constant)
	if !ok || n.Value < 0 || n.Value >= int64(a.SetSize) {
		return member{}, false
	}
	m.place = n.Value
	list = a.normal.Reduce(list, normal.Scope{})
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

// sortedAt completes a member of a list that is sorted by a value of each device.
func (a *analyzer) sortedAt(m member, list ast.Expr) (member, bool) {
	values, ok := a.mapped(list, normal.Scope{})
	if !ok || values.element == nil {
		return member{}, false
	}
	m.order, ok = values.Column()
	m.of = func(device ast.Expr) (ast.Expr, bool) {
		return a.normal.Substitute(values.element, values.device.name, a.withNamed(device, values.device.of), false)
	}
	return m, ok
}

func (a *analyzer) isDevices(expr ast.Expr) bool {
	list, ok := a.deviceList(expr, normal.Scope{})
	_, all := list.(condition.AllDevices)
	return ok && all
}

// withType returns the variable device with the type of another part.
func (a *analyzer) withType(device, as ast.Expr) ast.Expr {
	return a.withNamed(device, a.normal.Write.TypeOf(as))
}

func (a *analyzer) withNamed(device ast.Expr, t *types.Type) ast.Expr {
	return a.normal.Write.Ident(device.AsIdent(), t)
}
