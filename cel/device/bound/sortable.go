// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/outcome"
)

import "github.com/celset/celset/cel/device/bitset"

// sortable is a condition that says the same as another one as long as the values of the lists can
// be sorted.
type sortable struct {
	lists []mapped
	then  condition
}

func (n sortable) holds(s *state) bool {
	for _, m := range n.lists {
		leaf, _ := m.leafOf()
		c := s.column(leaf)
		if c == nil || !c.groups.sorted {
			return false
		}
		for _, devices := range [2]bitset.Set{s.Chosen, s.Domain} {
			for i := range devices.All() {
				within := m.list.membership(s, i)
				if within.May(outcome.Error) || within.May(outcome.True) && !c.groups.known.Has(i) {
					return false
				}
			}
		}
	}
	return true
}

func (n sortable) bound(s *state) outcome.Outcome {
	if !n.holds(s) {
		return outcome.Open
	}
	return n.then.bound(s)
}

func (n sortable) negation() condition { return sortable{n.lists, newNot(n.then)} }

func (n sortable) propagate(s *state) status {
	if !n.holds(s) {
		return noFix
	}
	return s.propagate(n.then)
}
