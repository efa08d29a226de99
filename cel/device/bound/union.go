// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/tree"
)

// unions has the devices by the values in the list that a leaf is for them. A value that is no list
// counts as the only one.
type unions struct {
	// known are the devices whose values are known, members those that have a value.
	known   bitset.Set
	members []bitset.Set
}

func newUnions(entries []entry) unions {
	u := unions{known: bitset.New(len(entries))}
	places := make(map[any]int)
	for i := range entries {
		var values []any
		switch e := &entries[i]; {
		case e.elements != nil:
			values = *e.elements
		case e.key != nil:
			values = []any{e.key}
		default:
			continue
		}
		u.known.Add(i)
		for _, element := range values {
			place, seen := places[element]
			if !seen {
				place = len(u.members)
				places[element] = place
				u.members = append(u.members, bitset.New(len(entries)))
			}
			u.members[place].Add(i)
		}
	}
	return u
}

// maxKeys is how long a list may be of which the values are known: as long as an attribute may be.
const maxKeys = 64

// keysIn are the values in a list, nil if they are not all ints, strings or bools.
func keysIn(list traits.Lister) *[]any {
	if size, ok := list.Size().(types.Int); !ok || size > maxKeys {
		return nil
	}
	keys := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		if !isKey(element) {
			return nil
		}
		keys = append(keys, element)
	}
	return &keys
}

// isKey tells whether equal values are equal in Go, too.
func isKey(value ref.Val) bool {
	switch value.(type) {
	case types.Bool, types.Int, types.String:
		return true
	default:
		return false
	}
}

// unionSize is the number of different values in lists.
//
//	devices.map(d, d.rails).flatten().distinct().size()
type unionSize struct {
	leaf *leaf
	list deviceList
}

// unionSize reads list.map(x, values).flatten().distinct().
func (a *analyzer) unionSize(values ast.Expr, s scope) quantity {
	values = a.normal.reduce(values, s)
	if !tree.IsCall(values, "flatten") || !values.AsCall().IsMemberFunction() || len(values.AsCall().Args()) > 0 {
		return open{}
	}
	m, ok := a.mapped(values.AsCall().Target(), s)
	if !ok {
		return open{}
	}
	leaf, ok := m.leafOf()
	if !ok {
		return open{}
	}
	return unionSize{leaf, m.list}
}

// unionCounts bounds the number of values. adds has for each possible device how many values it has
// that no chosen one has.
type unionCounts struct {
	members
	chosenValues, least, most int
	adds                      []int
}

// count is false if some value is not known. The counts are to be given back.
func (n unionSize) count(s *state) (t unionCounts, ok bool) {
	m, ok := membersOf(s, n.list)
	t.members = m
	c := s.column(n.leaf)
	if !ok || c == nil || c.unions.known == nil || !m.chosen.IsWithin(c.unions.known) || !m.possible.IsWithin(c.unions.known) || !s.spend() {
		return t, false
	}
	t.adds = s.numbers(len(s.tables.devices))
	clear(t.adds)
	others := 0
	for _, with := range c.unions.members {
		switch {
		case with.Meets(m.chosen):
			t.chosenValues++
		case with.Meets(m.possible):
			others++
			for i := range with.All() {
				t.adds[i]++
			}
		}
	}
	var joining []int
	for i := range m.possible.All() {
		joining = append(joining, t.adds[i])
	}
	slices.Sort(joining)
	t.least, t.most = t.chosenValues, t.chosenValues
	if m.fewest > 0 {
		// Whichever join, one of them adds as much as that.
		t.least += joining[m.fewest-1]
	}
	for _, adds := range joining[len(joining)-m.most:] {
		t.most += adds
	}
	t.most = min(t.most, t.chosenValues+others)
	return t, true
}

func (n unionSize) number(s *state) number {
	t, ok := n.count(s)
	defer t.giveBack(s)
	if !ok {
		return openNumber
	}
	return number{least: int64(t.least), most: int64(t.most)}
}

// unionLimits is a condition on the number of different values in lists.
type unionLimits struct {
	unionSize
	limits
	// general is the condition as it is written.
	general condition
}

func (n unionLimits) negation() condition {
	if opposite, ok := n.opposite(); ok {
		return unionLimits{n.unionSize, opposite, newNot(n.general)}
	}
	return not{n}
}

func (n unionLimits) bound(s *state) Outcome { return n.general.bound(s) }

// propagate removes the devices that would add too many values.
func (n unionLimits) propagate(s *state) bool {
	t, ok := n.count(s)
	defer t.giveBack(s)
	if !ok {
		return s.propagate(n.general)
	}
	if n.verdict(int64(t.least), int64(t.most)) == False {
		return false
	}
	keep := s.borrow(t.possible)
	for i := range t.possible.All() {
		if int64(t.chosenValues+t.adds[i]) > n.most {
			keep.Remove(i)
		}
	}
	t.remove(s, keep)
	s.giveBack(keep)
	return true
}
