// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

// Spreading picks candidates one by one, always the best ranked one of those that
// the constraints with DoNotSchedule allow and that exceed the maxSkew of the
// others the least, the first constraint counting most.
//
// A topology is a value that some candidate has for the key. Picking a cluster of
// one is within maxSkew if then no other topology has so few picked clusters that
// the difference is larger. A topology all of whose candidates are picked still
// counts. A cluster without the key is in no topology: DoNotSchedule never
// selects it, ScheduleAnyway after all that are in one.
//
// Candidates with the same topologies are interchangeable but for their rank, so
// only the first one of each such class is looked at.

const maxSpreadConstraints = 8

// spreadConstraint is one of them with its defaults.
type spreadConstraint struct {
	path    *field.Path
	key     string
	claims  bool
	maxSkew int
	hard    bool
}

func spreadConstraints(policy *clusterv1beta1.SpreadPolicy, wrong *misconfigurations) []spreadConstraint {
	path := field.NewPath("spec", "spreadPolicy", "spreadConstraints")
	if n := len(policy.SpreadConstraints); n > maxSpreadConstraints {
		wrong.add(Spread, path, fmt.Sprintf("%d constraints are too many; use at most %d", n, maxSpreadConstraints))
		return nil
	}
	var result []spreadConstraint
	for i, term := range policy.SpreadConstraints {
		result = append(result, spreadConstraintOf(&term, path.Index(i), wrong))
	}
	return result
}

func spreadConstraintOf(term *clusterv1beta1.SpreadConstraintsTerm, path *field.Path, wrong *misconfigurations) spreadConstraint {
	if term.TopologyKey == "" {
		wrong.add(Spread, path.Child("topologyKey"), "the key is empty; name a label or a claim of clusters")
	}
	switch term.TopologyKeyType {
	case clusterv1beta1.TopologyKeyTypeLabel, clusterv1beta1.TopologyKeyTypeClaim:
	default:
		wrong.add(Spread, path.Child("topologyKeyType"), fmt.Sprintf("unknown type %q; use Label or Claim", term.TopologyKeyType))
	}
	if term.MaxSkew < 0 {
		wrong.add(Spread, path.Child("maxSkew"), fmt.Sprintf("the skew %d must be at least 1", term.MaxSkew))
	}
	switch term.WhenUnsatisfiable {
	case "", clusterv1beta1.ScheduleAnyway, clusterv1beta1.DoNotSchedule:
	default:
		wrong.add(Spread, path.Child("whenUnsatisfiable"),
			fmt.Sprintf("unknown action %q; use ScheduleAnyway or DoNotSchedule", term.WhenUnsatisfiable))
	}
	return spreadConstraint{
		path:    path,
		key:     term.TopologyKey,
		claims:  term.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim,
		maxSkew: max(1, int(term.MaxSkew)),
		hard:    term.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule,
	}
}

// topology is the value of a cluster that the constraint spreads over.
func (s *spreadConstraint) topology(of *clusterv1.ManagedCluster) (value string, present bool) {
	if s.claims {
		return cluster.New(of).Claims().Lookup(s.key)
	}
	return cluster.New(of).Labels().Lookup(s.key)
}

// pick marks the candidates that are selected, at most limit, and says of the
// others why they are not. The candidates are ranked.
func (r *run) pick(candidates []*Candidate, limit int) {
	if !r.plan.spreads(limit, len(candidates)) {
		for i, c := range candidates {
			if c.Selected = i < limit; !c.Selected {
				c.Reason = r.surplus()
			}
		}
		return
	}
	defer r.observe(KindSpread, Spread)()
	r.ranking = newRanking(r.plan.spread, candidates)
	s := r.ranking.spreading()
	r.ranking.picked = s.pick(limit)
	for _, rank := range r.ranking.picked {
		candidates[rank].Selected = true
	}
	for _, class := range s.classes {
		if class.reason = s.refusal(class); class.reason == nil {
			class.reason = r.surplus()
		}
		for _, rank := range class.ranks {
			candidates[rank].Reason = class.reason
		}
	}
}

// spreads tells whether constraints can make a difference to which of some candidates are selected.
func (p *plan) spreads(limit, candidates int) bool {
	return slices.ContainsFunc(p.spread, func(s spreadConstraint) bool { return s.hard || limit < candidates })
}

func (r *run) surplus() Reason {
	wanted := 0
	if r.placement.Spec.NumberOfClusters != nil {
		wanted = int(*r.placement.Spec.NumberOfClusters)
	}
	return &Surplus{wanted}
}

// ranking is what picking depends on: the candidates in order of their rank, and in which topologies they are. It is
// kept with the result, because a cluster that moves to another region concerns every Placement that is spread over
// regions, and few of them select it: how clusters rank does not depend on where they are.
type ranking struct {
	constraints []spreadConstraint
	// places are those of the candidates among the available clusters.
	places []int32
	// in has for each constraint the index of the topology of each candidate, absent for none.
	in [][]int32
	// topologies are by constraint the values that some candidate has or had.
	topologies []values
	// picked are the ranks of the candidates that were selected.
	picked []int32
}

// values are strings by the index that each got.
type values struct {
	indexes map[string]int32
	list    []string
}

// index returns the index of a value.
func (v *values) index(value string) int32 {
	i, known := v.indexes[value]
	if !known {
		i = int32(len(v.list))
		v.indexes[value], v.list = i, append(v.list, value)
	}
	return i
}

func newRanking(constraints []spreadConstraint, candidates []*Candidate) *ranking {
	r := &ranking{constraints: constraints, places: make([]int32, len(candidates))}
	for rank, c := range candidates {
		r.places[rank] = c.place
	}
	for i := range constraints {
		r.in, r.topologies = append(r.in, make([]int32, len(candidates))), append(r.topologies, values{indexes: map[string]int32{}})
		for rank, c := range candidates {
			r.move(i, rank, c.Cluster)
		}
	}
	return r
}

// move has a candidate in the topology of a constraint in which a version of its cluster is.
func (r *ranking) move(constraint, rank int, of *clusterv1.ManagedCluster) {
	r.in[constraint][rank] = absent
	if value, present := r.constraints[constraint].topology(of); present {
		r.in[constraint][rank] = r.topologies[constraint].index(value)
	}
}

// bytes is about what is kept. Values are in a list and in a map.
func (r *ranking) bytes() int {
	bytes := 4 * len(r.places) * (1 + len(r.in))
	for i := range r.topologies {
		for _, value := range r.topologies[i].list {
			bytes += 8*wordBytes + len(value)
		}
	}
	return bytes
}

// mostMoves is of how many clusters that have moved the ranks are looked for.
const mostMoves = 16

// picksTheSame reports whether the same clusters are selected when some of the available clusters are in other
// topologies, and notes these; false says nothing. wanted is how many clusters the Placement wants, nil for all.
func (r *ranking) picksTheSame(moved []int, clusters []*clusterv1.ManagedCluster, wanted *int32) bool {
	// Where fewer are selected, a condition says how many the constraints have removed.
	if r == nil || len(moved) > mostMoves || len(r.picked) == 0 || wanted != nil && len(r.picked) < int(*wanted) {
		return false
	}
	limit := len(r.places)
	if wanted != nil {
		limit = min(limit, int(*wanted))
	}
	for _, place := range moved {
		rank := slices.Index(r.places, int32(place))
		for i := range r.constraints {
			if rank >= 0 {
				r.move(i, rank, clusters[place])
			}
		}
	}
	s := r.spreading()
	// If no candidate is in a topology, a condition says so. Values that no candidate has any more are dropped when the
	// Placement is decided: a cluster may have another one each second.
	if slices.ContainsFunc(s.topologies, func(t topologies) bool { return t.few == 0 || len(t.values) > len(r.places)+mostMoves }) {
		return false
	}
	before, now := slices.Sorted(slices.Values(r.picked)), slices.Sorted(slices.Values(s.pick(limit)))
	return slices.Equal(before, now)
}

// spreading is the state of picking candidates, which are known by their ranks.
type spreading struct {
	constraints []spreadConstraint
	topologies  []topologies
	// classes that have candidates left, in order of the rank of the first of these.
	classes []*class
}

// topologies are those of one constraint, by the index that their values got.
type topologies struct {
	values []string
	// counts are how many clusters of each are picked, least is the smallest of them
	// and few how many there are of the smallest. Those that no candidate is in have more than any.
	counts     []int
	least, few int
}

// absent is in place of the index of a cluster that is in no topology.
const absent = -1

// class is the candidates that are in the same topologies.
type class struct {
	// in has for each constraint the index of the topology, absent for none.
	in []int32
	// ranks are those of the candidates not yet picked, in order.
	ranks  []int32
	reason Reason
}

// spreading has all candidates to pick from.
func (r *ranking) spreading() *spreading {
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
func (s *spreading) classify(r *ranking) {
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

// refusal says which constraint does not allow a class, nil if all do.
func (s *spreading) refusal(of *class) Reason {
	for i := range s.constraints {
		c, t := &s.constraints[i], &s.topologies[i]
		if !c.hard || s.over(i, of) <= 0 {
			continue
		}
		if of.in[i] == absent {
			return &NoTopology{Constraint: c.path, Key: c.key}
		}
		return &Skewed{c.path, c.key, t.values[of.in[i]], t.counts[of.in[i]], t.least, c.maxSkew}
	}
	return nil
}
