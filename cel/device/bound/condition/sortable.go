// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// sortable is a condition that is valid only if the values of the lists can be sorted. Otherwise it allows every outcome.
type sortable struct {
	lists []Mapped
	then  propagate.Condition
}

func (n sortable) holds(s *propagate.State) bool {
	for _, m := range n.lists {
		leaf, _ := m.LeafOf()
		c := s.Column(leaf)
		if c == nil || !c.Groups.Sorted {
			return false
		}
		for _, devices := range [2]bitset.Set{s.Chosen, s.Domain} {
			for i := range devices.All() {
				within := m.List.membership(s, i)
				if within.May(outcome.Error) || within.May(outcome.True) && !c.Groups.Known.Has(i) {
					return false
				}
			}
		}
	}
	return true
}

func (n sortable) Bound(s *propagate.State) outcome.Outcome {
	if !n.holds(s) {
		return outcome.Open
	}
	return n.then.Bound(s)
}

func (n sortable) Negation() propagate.Condition { return sortable{n.lists, NewNot(n.then)} }

func (n sortable) Propagate(s *propagate.State) propagate.Status {
	if !n.holds(s) {
		return propagate.NoFix
	}
	return s.Propagate(n.then)
}

// NewSortable returns a condition that is then if the values of the lists can be sorted, and otherwise allows every outcome.
func NewSortable(lists []Mapped, then propagate.Condition) propagate.Condition {
	return sortable{lists, then}
}
