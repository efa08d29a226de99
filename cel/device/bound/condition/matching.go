// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
)

// matching is list.paired(other, a, b, joined). While devices are added, the lengths of the two lists are open. For each
// possible pair of lengths, the chosen devices must find partners in the other list, and each possible device must have enough
// partners.
type matching struct {
	lists [2]DeviceList
	joins *propagate.Predicate
}

// bipartite is the graph of a matching: the members of both lists and the relation that joins members of different lists.
type bipartite struct {
	state *propagate.State
	sides [2]members
	// all[i] has the chosen and possible members of list i.
	all   [2]bitset.Set
	joins *propagate.Predicate
}

// bipartite builds the graph. It returns false if the relation may fail, if the relation or a membership is not decided, or if
// a device is in both lists. The caller must call giveBack in any case.
func (n matching) bipartite(s *propagate.State) (c *bipartite, ok bool) {
	c, ok = &bipartite{state: s, joins: n.joins}, true
	for side, list := range n.lists {
		m, known := membersOf(s, list)
		c.sides[side], c.all[side] = m, s.Borrow(m.chosen)
		c.all[side].Join(m.possible)
		ok = ok && known
	}
	if !ok || c.all[0].Meets(c.all[1]) {
		return c, false
	}
	for i := range c.all[0].All() {
		if !s.Spend() || !c.row(0, i).IsExact(c.all[1]) {
			return c, false
		}
	}
	return c, true
}

func (c *bipartite) giveBack() {
	for side := range c.sides {
		c.sides[side].giveBack(c.state)
		c.state.GiveBack(c.all[side])
	}
}

// row returns the devices of the other list that are joined to a member of list side.
func (c *bipartite) row(side, device int) *propagate.Row {
	return c.joins.RowAt(c.state, 1-side, device)
}

// lengths has the lengths of the two lists in a complete set.
type lengths [2]int

// lengths calls f for each pair of lengths that the lists may have in a complete set. The longer length must be a multiple of
// the shorter one.
func (c *bipartite) lengths(f func(lengths)) {
	s := c.state
	left := max(0, s.Left)
	others := 0
	if left > 0 {
		others = s.Domain.Count() - c.sides[0].possible.Count() - c.sides[1].possible.Count()
	}
	for x := range c.sides[0].most + 1 {
		for y := range c.sides[1].most + 1 {
			if rest := left - x - y; rest < 0 || rest > others {
				continue
			}
			l := lengths{c.sides[0].chosen.Count() + x, c.sides[1].chosen.Count() + y}
			if longer, shorter := max(l[0], l[1]), min(l[0], l[1]); longer == 0 || shorter > 0 && longer%shorter == 0 {
				f(l)
			}
		}
	}
}

// takes returns the number of partners that each member of list side needs.
func (l lengths) takes(side int) int {
	if l[side] == 0 {
		return 0
	}
	return max(1, l[1-side]/l[side])
}

// possibleMembers returns the devices that may be in a list of the final length. If the chosen members already have this
// length, no possible device may join.
func (c *bipartite) possibleMembers(side int, l lengths) bitset.Set {
	if l[side] == c.sides[side].chosen.Count() {
		return c.sides[side].chosen
	}
	return c.all[side]
}

// partners returns how many devices of the other list may become partners of a member of list side.
func (c *bipartite) partners(side, device int, l lengths) int {
	return c.row(side, device).Yes.CountAnd(c.possibleMembers(1-side, l))
}

// fits reports whether a matching with these final lengths seems possible: enough members of each list have enough partners,
// and the chosen members can have their partners at the same time. The check is complete only if no device is left to choose.
func (c *bipartite) fits(l lengths) bool {
	for side := range c.sides {
		able := 0
		for i := range c.possibleMembers(side, l).All() {
			if c.partners(side, i, l) >= l.takes(side) {
				able++
			}
		}
		if able < l[side] || !c.suffices(side, l) {
			return false
		}
	}
	return true
}

// suffices reports whether all chosen members of list side can have disjoint partners.
func (c *bipartite) suffices(side int, l lengths) bool {
	takes, given := l.takes(side), l.takes(1-side)
	var chosen, partners []int
	for i := range c.sides[side].chosen.All() {
		// A member with several partners is entered several times, so that an ordinary matching finds all partners.
		for range takes {
			chosen = append(chosen, i)
		}
	}
	for i := range c.possibleMembers(1-side, l).All() {
		partners = append(partners, i)
	}
	joined := func(a, b int) bool { return c.row(side, chosen[a]).Yes.Has(partners[b]) }
	return library.NewPairing(len(chosen), len(partners), given, joined).All()
}

func (n matching) Bound(s *propagate.State) outcome.Outcome {
	c, ok := n.bipartite(s)
	defer c.giveBack()
	if !ok {
		return outcome.Open
	}
	return outcomesOf(c.find())
}

func (c *bipartite) find() matchResult {
	found := none
	c.lengths(func(l lengths) {
		if found == none && c.fits(l) {
			found = some
		}
	})
	if found == some && c.sides[0].most == 0 && c.sides[1].most == 0 {
		return surely
	}
	return found
}

// Propagate removes the possible devices that don't have enough partners for any pair of lengths.
func (n matching) Propagate(s *propagate.State) propagate.Status {
	c, ok := n.bipartite(s)
	defer c.giveBack()
	if !ok {
		return propagate.NoFix
	}
	keep := [2]bitset.Set{s.Borrow(c.all[0]), s.Borrow(c.all[1])}
	defer func() { s.GiveBack(keep[0]); s.GiveBack(keep[1]) }()
	keep[0].Clear()
	keep[1].Clear()
	found := false
	c.lengths(func(l lengths) {
		if !c.fits(l) {
			return
		}
		found = true
		for side, m := range c.sides {
			if l[side] <= m.chosen.Count() {
				continue
			}
			for i := range m.possible.All() {
				if c.partners(side, i, l) >= l.takes(side) {
					keep[side].Add(i)
				}
			}
		}
	})
	if !found {
		return propagate.Failed
	}
	for side, m := range c.sides {
		m.remove(s, keep[side])
	}
	return propagate.NoFix
}

// NewMatching returns the function Paired of package library.
func NewMatching(list, other DeviceList, joins *propagate.Predicate) propagate.Condition {
	return matching{[2]DeviceList{list, other}, joins}
}
