// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// spreading is the state of picking candidates.
type spreading struct {
	constraints []spreadConstraint
	topologies  []topologies
	// classes that have candidates left, in order of the rank of the first of these.
	classes []*class
}

// topologies are those of one constraint, by the index that their values got.
type topologies struct {
	// of has the values of all available clusters.
	of     *column
	index  map[string]int
	values []string
	// counts are how many clusters of each are picked, least is the smallest of them
	// and few how many there are of the smallest.
	counts     []int
	least, few int
}

// class is the candidates, ranked, that are in the same topologies.
type class struct {
	// in has for each constraint the index of the topology, -1 for none.
	in []int
	// candidates are those not yet picked, and ranks their places in the ranking.
	candidates []*Candidate
	ranks      []int
	reason     Reason
}

func newSpreading(constraints []spreadConstraint, available *Availability, candidates []*Candidate) *spreading {
	s := &spreading{constraints: constraints, topologies: make([]topologies, len(constraints))}
	for i := range s.topologies {
		s.topologies[i].index = map[string]int{}
		s.topologies[i].of = available.joint.column(constraints[i].topology(), available.Clusters)
	}
	classes := map[string]*class{}
	in, key := make([]int, len(constraints)), make([]byte, 0, 4*len(constraints))
	for rank, c := range candidates {
		s.locate(c, in)
		key = key[:0]
		for _, i := range in {
			key = binary.BigEndian.AppendUint32(key, uint32(i+1))
		}
		of := classes[string(key)]
		if of == nil {
			of = &class{in: slices.Clone(in)}
			classes[string(key)] = of
			s.classes = append(s.classes, of)
		}
		of.candidates, of.ranks = append(of.candidates, c), append(of.ranks, rank)
	}
	for i := range s.topologies {
		t := &s.topologies[i]
		t.counts, t.few = make([]int, len(t.values)), len(t.values)
	}
	return s
}

// locate sets in to the topologies of a candidate.
func (s *spreading) locate(c *Candidate, in []int) {
	for i := range s.constraints {
		t := &s.topologies[i]
		is := t.of.values[c.at]
		if !is.present {
			in[i] = -1
			continue
		}
		var known bool
		if in[i], known = t.index[is.value]; !known {
			in[i] = len(t.values)
			t.index[is.value] = in[i]
			t.values = append(t.values, is.value)
		}
	}
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

// nowhere is the excess of a cluster that is in no topology.
const nowhere = int(^uint(0) >> 1)

// judge tells whether a cluster of the class may be picked, and by how much it
// would exceed each maxSkew; fits if it does not.
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

// over is by how much the skew of a constraint would exceed maxSkew if a cluster of
// the class were picked, at most 0 if it would not. The fewest of a topology are
// those before: the only topology that has so few may always have one more.
func (s *spreading) over(i int, class *class) int {
	in := class.in[i]
	if in < 0 {
		return nowhere
	}
	t := &s.topologies[i]
	return t.counts[in] + 1 - t.least - s.constraints[i].maxSkew
}

// take picks the first candidate of a class.
func (s *spreading) take(i int) {
	of := s.classes[i]
	of.candidates[0].Selected = true
	of.candidates, of.ranks = of.candidates[1:], of.ranks[1:]
	for j, in := range of.in {
		if in >= 0 {
			s.topologies[j].pick(in)
		}
	}
	s.classes = slices.Delete(s.classes, i, i+1)
	if len(of.candidates) > 0 {
		at, _ := slices.BinarySearchFunc(s.classes, of.ranks[0], func(c *class, rank int) int { return cmp.Compare(c.ranks[0], rank) })
		s.classes = slices.Insert(s.classes, at, of)
	}
}

func (t *topologies) pick(in int) {
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

// refusal says which constraint does not allow a class, nil if all do.
func (s *spreading) refusal(of *class) Reason {
	for i := range s.constraints {
		c, t := &s.constraints[i], &s.topologies[i]
		if !c.hard || s.over(i, of) <= 0 {
			continue
		}
		if of.in[i] < 0 {
			return &NoTopology{Constraint: c.path, Key: c.key}
		}
		return &Skewed{c.path, c.key, t.values[of.in[i]], t.counts[of.in[i]], t.least, c.maxSkew}
	}
	return nil
}
