// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/celset/celset/placement/internal/candidate"
)

// spreading is the state while candidates are picked. A candidate is given by its rank.
type spreading struct {
	constraints []Constraint
	topologies  []topologies
	// classes are the classes that have candidates left, in order of the rank of the first candidate.
	classes []*class
}

// topologies counts the picked clusters in the topologies of one constraint.
type topologies struct {
	values []string
	// counts has the number of picked clusters in each topology. It is nowhere if no candidate is in the topology. least is
	// the smallest count, and few is the number of topologies with that count.
	counts     []int
	least, few int
}

// class has the candidates that are in the same topologies.
type class struct {
	// in has the index of the topology for each constraint. It is absent if there is none.
	in []int32
	// ranks are the ranks of the candidates that are not picked yet, in order.
	ranks  []int32
	reason candidate.Reason
}

// newSpreading returns the state before the first candidate is picked.
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

// classify finds the classes.
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

// pick returns the ranks of the candidates that are selected, at most limit, in the order in which they are picked.
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

// best returns the index of the class to pick from, -1 if no class is allowed. The
// first class that fits is best: none exceeds a maxSkew less.
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

// nowhere is larger than any count or excess. It is the excess of a cluster that is in no topology.
const nowhere = int(^uint(0) >> 1)

// judge reports whether a cluster of the class may be picked, and by how much it
// would exceed each maxSkew. fits reports that it exceeds none.
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

// over returns by how much the skew of a constraint would exceed maxSkew if a cluster of
// the class were picked. It is at most 0 if the skew would not. The smallest count is taken before the pick, so that
// the only topology with the smallest count may always have one more.
func (s *spreading) over(i int, class *class) int {
	in := class.in[i]
	if in == absent {
		return nowhere
	}
	t := &s.topologies[i]
	return t.counts[in] + 1 - t.least - s.constraints[i].maxSkew
}

// take picks the first candidate of a class, and returns its rank.
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

// refusal returns the reason for which a constraint does not allow a class, nil if all allow it.
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
