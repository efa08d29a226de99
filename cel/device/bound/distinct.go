// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bitset"
)

// groups has the devices by the value that a leaf is for them: a number, a string or a
// bool.
type groups struct {
	// known are the devices that have such a value, members those of each value.
	known   bitset.Set
	members []bitset.Set
	// uniform: all values are of one type. sorted: they have an order, and members is in it.
	uniform, sorted bool
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
	g.sort(places)
	return g
}

// sort puts the values in their order. places has them.
func (g *groups) sort(places map[any]int) {
	values := make([]any, len(g.members))
	for value, place := range places {
		values[place] = value
	}
	if g.sorted = g.uniform && !slices.ContainsFunc(values, func(v any) bool { return !isOrdered(v) }); !g.sorted {
		return
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return compareValues(values[i], values[j]) })
	members := slices.Clone(g.members)
	for i, place := range order {
		g.members[i] = members[place]
	}
}

func isOrdered(value any) bool {
	switch value.(type) {
	case types.Int, types.String:
		return true
	default:
		return false
	}
}

// compareValues compares two ints or two strings, as CEL sorts them.
func compareValues(a, b any) int {
	if a, ok := a.(types.Int); ok {
		return cmp.Compare(a, b.(types.Int))
	}
	return cmp.Compare(a.(types.String), b.(types.String))
}

// distinctSize is list.map(x, value).distinct().size().
type distinctSize struct {
	leaf *leaf
	// list is nil for all devices of the set.
	list deviceList
}

// distinctCounts bounds the number of values. It is false if some value of the devices that are
// or may come into the list is not known, or it is not known which devices these are.
func (n distinctSize) distinctCounts(s *state) (*groups, distinctCounts, bool) {
	c := s.column(n.leaf)
	if c == nil || !s.spend() {
		return nil, distinctCounts{}, false
	}
	t := distinctCounts{left: s.Left, inList: s.Chosen, mayJoin: s.Domain}
	if n.list != nil {
		listed, ok := n.listed(s)
		if !ok {
			return nil, distinctCounts{}, false
		}
		t.inList, t.mayJoin = slices.Clone(listed), listed
		t.inList.Keep(s.Chosen)
		t.mayJoin.Keep(s.Domain)
		t.room = s.Domain.Count() - t.mayJoin.Count()
	}
	if !t.inList.IsWithin(c.groups.known) || s.Left > 0 && !t.mayJoin.IsWithin(c.groups.known) {
		return nil, distinctCounts{}, false
	}
	t.count(&c.groups)
	return &c.groups, t, true
}

// listed are the devices, chosen or possible, that are in the list if they are in the set. It is
// false if that is not known for all.
func (n distinctSize) listed(s *state) (bitset.Set, bool) {
	all, listed := slices.Clone(s.Chosen), slices.Clone(s.Chosen)
	all.Join(s.Domain)
	listed.Clear()
	for i := range all.All() {
		switch n.list.membership(s, i) {
		case True:
			listed.Add(i)
		case False:
		default:
			return nil, false
		}
	}
	return listed, true
}

func (n distinctSize) number(s *state) number {
	_, t, ok := n.distinctCounts(s)
	if !ok {
		return openNumber
	}
	return number{least: int64(t.fewest()), most: int64(t.most())}
}

// distinctCounts counts the values in the list of a partial set.
type distinctCounts struct {
	// inList are the chosen devices in the list, mayJoin the possible ones that would be.
	inList, mayJoin bitset.Set
	// chosen values are in the list, room is how many possible devices have one of them or are
	// not in the list.
	chosen, room int
	// others are how many possible devices there are of each other value, most first.
	others []int
	// left devices join the set.
	left int
}

func (t *distinctCounts) count(g *groups) {
	for _, members := range g.members {
		possible := t.mayJoin.CountAnd(members)
		switch {
		case members.Meets(t.inList):
			t.chosen++
			t.room += possible
		case possible > 0:
			t.others = append(t.others, possible)
		}
	}
	slices.SortFunc(t.others, func(a, b int) int { return cmp.Compare(b, a) })
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
	g, t, ok := n.distinctCounts(s)
	if !ok {
		return s.propagate(n.general)
	}
	if n.verdict(int64(t.fewest()), int64(t.most())) == False {
		return false
	}
	if s.Left <= 0 {
		return true
	}
	asBefore := t
	asBefore.room--
	asBefore.left--
	addsNone := n.verdict(int64(asBefore.fewest()), int64(asBefore.most()))
	if addsNone == False && n.list != nil {
		// Devices that are not in the list.
		s.keep(t.mayJoin)
	}
	verdicts := make(map[int]Outcome)
	for _, members := range g.members {
		possible := t.mayJoin.CountAnd(members)
		verdict := addsNone
		switch {
		case possible == 0:
			continue
		case !members.Meets(t.inList):
			verdict = n.verdictWith(t, possible, verdicts)
		}
		if verdict == False {
			drop := members
			if n.list != nil {
				drop = slices.Clone(members)
				drop.Keep(t.mayJoin)
			}
			s.drop(drop)
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
