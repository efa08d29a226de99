// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// groups has the devices by the value that a leaf is for them: a number, a string or a
// bool.
type groups struct {
	// known are the devices that have such a value, members those of each value.
	known   bitset.Set
	members []bitset.Set
	// uniform: all values are of one type.
	uniform bool
}

func newGroups(entries []entry) groups {
	g := groups{known: bitset.New(len(entries)), uniform: true}
	var first reflect.Type
	places := make(map[any]int)
	for i := range entries {
		key := entries[i].key
		if key == nil {
			continue
		}
		place, seen := places[key]
		if !seen {
			place = len(g.members)
			places[key] = place
			g.members = append(g.members, bitset.New(len(entries)))
		}
		if first == nil {
			first = reflect.TypeOf(key)
		}
		g.uniform = g.uniform && first == reflect.TypeOf(key)
		g.members[place].Add(i)
		g.known.Add(i)
	}
	return g
}

// distinctSize is list.map(x, value).distinct().size() over all devices of the
// set.
type distinctSize struct{ leaf *leaf }

// groups returns nil if some value of the devices that are or may come into the set is
// not known.
func (n distinctSize) groups(s *state) *groups {
	c := s.column(n.leaf)
	if c == nil || !s.Chosen.IsWithin(c.groups.known) || s.Left > 0 && !s.Domain.IsWithin(c.groups.known) || !s.spend() {
		return nil
	}
	return &c.groups
}

func (n distinctSize) number(s *state) number {
	g := n.groups(s)
	if g == nil {
		return openNumber
	}
	t := newDistinctCounts(s, g)
	return number{least: int64(t.fewest()), most: int64(t.most())}
}

// distinctCounts counts the values in a partial set.
type distinctCounts struct {
	// chosen values are in the set, room is how many possible devices have one of them.
	chosen, room int
	// others are how many possible devices there are of each other value, most first.
	others []int
	// left devices join the set.
	left int
}

func newDistinctCounts(s *state, g *groups) distinctCounts {
	t := distinctCounts{left: s.Left}
	for _, members := range g.members {
		possible := s.Domain.CountAnd(members)
		switch {
		case members.Meets(s.Chosen):
			t.chosen++
			t.room += possible
		case possible > 0:
			t.others = append(t.others, possible)
		}
	}
	slices.SortFunc(t.others, func(a, b int) int { return cmp.Compare(b, a) })
	return t
}

func (t distinctCounts) most() int { return t.chosen + min(max(0, t.left), len(t.others)) }

// fewest values: devices with a value that is there already join first, then those of
// the most frequent ones.
func (t distinctCounts) fewest() int { return t.fewestWithout(-1) }

// fewestWithout leaves out one of the others.
func (t distinctCounts) fewestWithout(place int) int {
	values, rest := t.chosen, t.left-t.room
	for i, count := range t.others {
		if rest <= 0 {
			break
		}
		if i != place {
			values++
			rest -= count
		}
	}
	return values
}

// distinctLimits is a condition on the number of different values in the set.
//
//	devices.map(d, d.rack).distinct().size() == 1
type distinctLimits struct {
	distinctSize
	limits
	// general is the condition as it is written.
	general condition
}

func (n distinctLimits) negation() condition {
	if opposite, ok := n.opposite(); ok {
		return distinctLimits{n.distinctSize, opposite, newNot(n.general)}
	}
	return not{n}
}

func (n distinctLimits) bound(s *state) Outcome { return n.general.bound(s) }

// propagate removes the devices whose value would be one too many, or that would leave no
// room for as many values as there must be.
func (n distinctLimits) propagate(s *state) bool {
	g := n.groups(s)
	if g == nil {
		return s.propagate(n.general)
	}
	t := newDistinctCounts(s, g)
	if n.verdict(int64(t.fewest()), int64(t.most())) == False {
		return false
	}
	if s.Left <= 0 {
		return true
	}
	known := t
	known.room--
	known.left--
	verdicts := make(map[int]Outcome)
	for _, members := range g.members {
		possible := s.Domain.CountAnd(members)
		var verdict Outcome
		switch {
		case possible == 0:
			continue
		case members.Meets(s.Chosen):
			verdict = n.verdict(int64(known.fewest()), int64(known.most()))
		default:
			verdict = n.verdictWith(t, possible, verdicts)
		}
		if verdict == False {
			s.drop(members)
		}
	}
	return true
}

// verdictWith is the verdict if a device is chosen whose value so many possible devices
// have, and no chosen one.
func (n distinctLimits) verdictWith(t distinctCounts, possible int, known map[int]Outcome) Outcome {
	if _, is := known[possible]; !is {
		place := slices.Index(t.others, possible)
		t.chosen++
		t.left--
		t.room += possible - 1
		most := t.chosen + min(t.left, len(t.others)-1)
		known[possible] = n.verdict(int64(t.fewestWithout(place)), int64(most))
	}
	return known[possible]
}
