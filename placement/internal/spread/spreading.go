// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/celset/celset/placement/internal/candidate"
)

// spreading is the state of the picking. Candidates are identified by rank.
type spreading struct {
	constraints []Constraint
	topologies  []topologies
	// classes holds the classes that still have candidates, in the order of their best ranks.
	classes []*class
}

// topologies counts, for one constraint, the picked clusters in each topology.
type topologies struct {
	values []string
	// counts holds the number of picked clusters in each topology. It is nowhere if no candidate is in the topology any more.
	// least is the smallest count. few is the number of topologies with that count.
	counts     []int
	least, few int
}

// class holds the candidates that are in the same topologies for all constraints.
type class struct {
	// in holds, for each constraint, the index of the topology, or absent.
	in []int32
	// ranks holds the ranks of the candidates that are not picked yet, in ascending order.
	ranks  []int32
	reason candidate.Reason
}

// newSpreading returns the state before the first pick.
func newSpreading(r *Ranking) *spreading {
	s := &spreading{constraints: r.constraints, topologies: make([]topologies, len(r.constraints))}
	for i := range s.topologies {
		t := &s.topologies[i]
		t.values, t.counts = r.topologies[i].list, slices.Repeat([]int{nowhere}, len(r.topologies[i].list))
		for _, in := range r.in[i] {
			if in != absent && t.counts[in] == nowhere {
				t.counts[in] = 0
				t.few++
			}
		}
	}
	s.classify(r)
	return s
}

// classify groups the candidates into classes.
func (s *spreading) classify(r *Ranking) {
	classes := map[string]*class{}
	key := make([]byte, 0, 4*len(s.constraints))
	for rank := range r.places {
		key = key[:0]
		for i := range r.in {
			key = binary.BigEndian.AppendUint32(key, uint32(r.in[i][rank]))
		}
		of := classes[string(key)]
		if of == nil {
			of = &class{in: make([]int32, len(r.in))}
			for i := range r.in {
				of.in[i] = r.in[i][rank]
			}
			s.classes, classes[string(key)] = append(s.classes, of), of
		}
		of.ranks = append(of.ranks, int32(rank))
	}
}

// pick picks at most limit candidates. It returns their ranks in the order of the picks.
func (s *spreading) pick(limit int) []int32 {
	picked := make([]int32, 0, limit)
	for range limit {
		best := s.best()
		if best < 0 {
			break
		}
		picked = append(picked, s.take(best))
	}
	return picked
}

// best returns the index of the class that the next pick comes from, or -1 if the constraints forbid all classes.
// Classes are sorted by rank, so the first class that exceeds no maxSkew is the best.
func (s *spreading) best() int {
	best := -1
	var least, excess [maxSpreadConstraints]int
	for i, class := range s.classes {
		allowed, fits := s.judge(class, &excess)
		switch {
		case !allowed:
		case fits:
			return i
		case best < 0 || slices.Compare(excess[:], least[:]) < 0:
			best, least = i, excess
		}
	}
	return best
}

// nowhere is larger than any count or excess. It is also the excess of a cluster without the key.
const nowhere = int(^uint(0) >> 1)

// judge sets excess, for each constraint, to the part of the skew above maxSkew after a pick from class. allowed is false if a
// constraint with DoNotSchedule forbids the pick. fits is true if the pick exceeds no maxSkew.
func (s *spreading) judge(class *class, excess *[maxSpreadConstraints]int) (allowed, fits bool) {
	fits = true
	for i := range s.constraints {
		excess[i] = 0
		if over := s.over(i, class); over > 0 {
			if s.constraints[i].hard {
				return false, false
			}
			excess[i], fits = over, false
		}
	}
	return true, fits
}

// over returns by how much one more picked cluster of the class would exceed the maxSkew of constraint i. The result is at most
// 0 if the pick stays within maxSkew. The count of the topology after the pick is compared with the smallest count before the
// pick. So if only one topology has the smallest count, that topology may always get one more cluster.
func (s *spreading) over(i int, class *class) int {
	in := class.in[i]
	if in == absent {
		return nowhere
	}
	t := &s.topologies[i]
	return t.counts[in] + 1 - t.least - s.constraints[i].maxSkew
}

// take picks the best candidate of class i and returns its rank.
func (s *spreading) take(i int) int32 {
	of := s.classes[i]
	picked := of.ranks[0]
	of.ranks = of.ranks[1:]
	for j, in := range of.in {
		if in != absent {
			s.topologies[j].pick(in)
		}
	}
	s.classes = slices.Delete(s.classes, i, i+1)
	if len(of.ranks) > 0 {
		at, _ := slices.BinarySearchFunc(s.classes, of.ranks[0], func(c *class, rank int32) int { return cmp.Compare(c.ranks[0], rank) })
		s.classes = slices.Insert(s.classes, at, of)
	}
	return picked
}

func (t *topologies) pick(in int32) {
	t.counts[in]++
	if t.counts[in]-1 > t.least {
		return
	}
	if t.few--; t.few > 0 {
		return
	}
	t.least = slices.Min(t.counts)
	for _, count := range t.counts {
		if count == t.least {
			t.few++
		}
	}
}

// refusal returns the reason why a constraint forbids picking from a class, or nil if all constraints permit it.
func (s *spreading) refusal(of *class) candidate.Reason {
	for i := range s.constraints {
		c, t := &s.constraints[i], &s.topologies[i]
		if !c.hard || s.over(i, of) <= 0 {
			continue
		}
		if of.in[i] == absent {
			return &candidate.NoTopology{Constraint: c.Path, Key: c.Key}
		}
		return &candidate.Skewed{
			Constraint: c.Path, Key: c.Key, Value: t.values[of.in[i]],
			Count: t.counts[of.in[i]], Least: t.least, MaxSkew: c.maxSkew,
		}
	}
	return nil
}
