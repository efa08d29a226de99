// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"

	"github.com/celset/celset/placement/internal/hub"
)

// A group is cut into slices in order of names only once. Cutting it again at each decision would be expensive: if a cluster
// left, all later clusters would move, and every later PlacementDecision of the group would be written. So a cluster that stays
// in its group also stays in its slice:
//
//  1. A former slice goes to the group that most of its clusters are in now.
//  2. A cluster that leaves makes a gap. New clusters fill gaps, first in slices that a cluster has left, then in the slices
//     with the fewest clusters. The remaining new clusters get new slices.
//  3. The emptiest slices, at most compactionWidth, are compacted if their clusters fit into one slice fewer. One slice is
//     removed, and its clusters move to the others. The first slice of the group stays, because some programs read the first
//     PlacementDecision by its name.
//
// So the change of one cluster writes at most compactionWidth objects of a group. Rule 3 also limits the number of slices. If s
// slices are left, any w = min(compactionWidth, s) of them hold more than 100(w-1) clusters together. So a number of slices up
// to compactionWidth is minimal. A larger number for n clusters is less than n/100 * w/(w-1), or one slice for 80 clusters.
//
// A group sorted by score is cut again at each decision, because its order holds for the whole group and not only in each
// slice. If only scores change, they are written no more often than spec.scoreRateLimit allows.

// MaxSliceLength is the maximum number of clusters in one PlacementDecision.
const MaxSliceLength = 100

// compactionWidth is the maximum number of slices that one compaction changes, including the removed slice.
const compactionWidth = 5

// filling is a slice while clusters are added to it.
type filling struct {
	// number is the number in the name of the slice. It is 0 for a new slice.
	number int
	// members holds the indices of the slice's clusters among the members of the group.
	members []int
	// short is set if a cluster has left the slice. Such a slice must be written anyway, so new clusters fill it first.
	short bool
}

// free returns the number of clusters that still fit into the slice.
func (p *filling) free() int { return MaxSliceLength - len(p.members) }

// take adds as many of the members to the slice as fit, and returns the others.
func (p *filling) take(members []int) []int {
	n := min(p.free(), len(members))
	p.members = append(p.members, members[:n]...)
	return members[n:]
}

// intoSlices divides each group into slices, sorted by number. former holds the existing slices.
func intoSlices(groups []piece, former []hub.FormerSlice, byScore bool) [][]*filling {
	result, waiting := keepSlices(groups, former)
	for i := range groups {
		if byScore {
			result[i] = recut(result[i], len(groups[i].members))
		} else {
			result[i] = compact(fill(result[i], waiting[i]))
		}
	}
	number(result)
	for i, parts := range result {
		slices.SortFunc(parts, byNumber)
		if byScore {
			deal(parts, len(groups[i].members))
		}
		for _, p := range parts {
			slices.Sort(p.members)
		}
	}
	return result
}

// position is the place of a cluster: the index of its group, and its index in that group.
type position struct {
	name         string
	group, index int
}

// positions holds the positions of all selected clusters, sorted by name.
type positions struct {
	all []position
	// placed[group][index] is true if the cluster at this position is already in a slice.
	placed [][]bool
	// next is the index in all that follows the position found last.
	next int
}

func positionsOf(groups []piece) *positions {
	count := 0
	for _, group := range groups {
		count += len(group.members)
	}
	s := &positions{all: make([]position, 0, count), placed: make([][]bool, len(groups))}
	for g, group := range groups {
		s.placed[g] = make([]bool, len(group.members))
		for i, m := range group.members {
			s.all = append(s.all, position{m.decision.ClusterName, g, i})
		}
	}
	byName := func(a, b position) int { return cmp.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(s.all, byName) {
		slices.SortFunc(s.all, byName)
	}
	return s
}

// find returns the position of a cluster. It returns false if the cluster is already placed or not selected. The clusters of a
// slice are sorted, so the position at next is usually the right one.
func (s *positions) find(name string) (position, bool) {
	if s.next == len(s.all) || s.all[s.next].name != name {
		at, found := slices.BinarySearchFunc(s.all, name, func(of position, name string) int { return cmp.Compare(of.name, name) })
		if !found {
			return position{}, false
		}
		s.next = at
	}
	found := s.all[s.next]
	s.next++
	return found, !s.placed[found.group][found.index]
}

// keepSlices assigns the existing slices to groups, with the clusters that stay in them. waiting holds, for each group, the
// members that are in no slice yet.
func keepSlices(groups []piece, former []hub.FormerSlice) (parts [][]*filling, waiting [][]int) {
	positions := positionsOf(groups)
	parts, waiting = make([][]*filling, len(groups)), make([][]int, len(groups))
	for _, slice := range former {
		group := groupNow(&slice, positions)
		if group < 0 || group >= len(groups) {
			continue
		}
		p := &filling{number: slice.Number, members: make([]int, 0, MaxSliceLength)}
		for _, decision := range slice.Decisions {
			// Each cluster is placed only once, even if the former objects contain it several times.
			if at, ok := positions.find(decision.ClusterName); ok && at.group == group && p.free() > 0 {
				p.members = append(p.members, at.index)
				positions.placed[at.group][at.index] = true
			}
		}
		p.short = len(p.members) < len(slice.Decisions)
		parts[group] = append(parts[group], p)
	}
	for g, placed := range positions.placed {
		for i, is := range placed {
			if !is {
				waiting[g] = append(waiting[g], i)
			}
		}
	}
	return parts, waiting
}

// groupNow returns the index of the group that now contains most of the slice's clusters. If several groups contain equally
// many, or if no cluster is left, it prefers the slice's former group, then the lowest index.
func groupNow(s *hub.FormerSlice, positions *positions) int {
	counts := map[int]int{}
	for _, decision := range s.Decisions {
		if at, ok := positions.find(decision.ClusterName); ok {
			counts[at.group]++
		}
	}
	group := s.Group
	for candidate, n := range counts {
		if most := counts[group]; n > most || n == most && group != s.Group && candidate < group {
			group = candidate
		}
	}
	return group
}

// fill adds the waiting members to existing slices, and to new slices if these are full. It returns at least one slice.
func fill(parts []*filling, waiting []int) []*filling {
	byNeed := slices.Clone(parts)
	slices.SortStableFunc(byNeed, func(a, b *filling) int {
		return cmp.Or(compareBool(b.short, a.short), cmp.Compare(len(a.members), len(b.members)))
	})
	for _, p := range byNeed {
		waiting = p.take(waiting)
	}
	for len(waiting) > 0 || len(parts) == 0 {
		p := &filling{}
		waiting = p.take(waiting)
		parts = append(parts, p)
	}
	return parts
}

// compact removes slices as long as the clusters of the emptiest slices fit into one slice fewer.
func compact(parts []*filling) []*filling {
	for len(parts) > 1 {
		emptiest, total := slices.Clone(parts), 0
		slices.SortStableFunc(emptiest, func(a, b *filling) int { return cmp.Compare(len(a.members), len(b.members)) })
		emptiest = emptiest[:min(compactionWidth, len(emptiest))]
		for _, p := range emptiest {
			total += len(p.members)
		}
		if total > MaxSliceLength*(len(emptiest)-1) {
			break
		}
		leaving := slices.MaxFunc(emptiest, func(a, b *filling) int {
			return cmp.Or(compareBool(a != parts[0], b != parts[0]), compareBool(a.free() > 0, b.free() > 0), byNumber(a, b))
		})
		moving := leaving.members
		for _, p := range emptiest {
			if p != leaving {
				moving = p.take(moving)
			}
		}
		parts = slices.DeleteFunc(parts, func(p *filling) bool { return p == leaving })
	}
	return parts
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// recut returns as many slices as n clusters need. It reuses the first existing slices. deal must fill the result.
func recut(parts []*filling, n int) []*filling {
	needed := max(1, (n+MaxSliceLength-1)/MaxSliceLength)
	parts = parts[:min(needed, len(parts))]
	for len(parts) < needed {
		parts = append(parts, &filling{})
	}
	return parts
}

// deal distributes the members 0 to n-1 over the slices in order.
func deal(parts []*filling, n int) {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for _, p := range parts {
		p.members = nil
		all = p.take(all)
	}
}

// number gives each new slice the lowest number that no other slice has.
func number(groups [][]*filling) {
	taken := map[int]bool{0: true}
	for _, parts := range groups {
		for _, p := range parts {
			taken[p.number] = true
		}
	}
	next := 0
	for _, parts := range groups {
		for _, p := range parts {
			for p.number == 0 {
				if next++; !taken[next] {
					p.number = next
				}
			}
		}
	}
}

func byNumber(a, b *filling) int { return cmp.Compare(a.number, b.number) }
