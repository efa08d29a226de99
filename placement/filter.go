// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// judge asks the predicates about all available clusters, or remembers what they say.
func (r *run) judge(memory *memory) error {
	defer r.observe(KindFilter, Predicate)()
	if len(r.plan.predicates) == 0 {
		memory.answers, memory.begun = nil, begun{}
		return r.interrupted()
	}
	answers, err := r.matches(memory, r.result.Available.Clusters)
	if err != nil {
		return err
	}
	memory.answers, memory.begun = answers, begun{}
	if r.result.Overrun != nil {
		memory.begun.Time = r.clock
	}
	r.result.Remembered = len(answers) - r.result.Evaluated - r.skipped
	return nil
}

// filter returns the clusters that pass both filters, in order of their names, and
// those of the removed ones that could not be evaluated.
func (r *run) filter(memory *memory) (passed []*Candidate, failed []Removal) {
	if len(r.plan.predicates) == 0 {
		passed = r.unfiltered()
	} else {
		passed = r.filterByPredicates(memory.answers)
	}
	for _, removal := range r.result.Filters[0].Removed {
		if _, ok := removal.Reason.(*Failed); ok {
			failed = append(failed, removal)
		}
	}
	passed = r.filterByTaints(passed)
	for i, c := range passed {
		c.index = i
	}
	return passed, failed
}

// batchLength is how many candidates are made at once.
const batchLength = 32

// batch makes candidates some at a time: one by one takes longer, and all together would stay
// in memory with their clusters as long as anybody knows one of them.
type batch struct{ made []Candidate }

// next is an empty one of those that are still to be made.
func (b *batch) next(left int) *Candidate {
	if len(b.made) == 0 {
		b.made = make([]Candidate, min(batchLength, left))
	}
	next := &b.made[0]
	b.made = b.made[1:]
	return next
}

// unfiltered are all available clusters, for a Placement without predicates.
func (r *run) unfiltered() []*Candidate {
	available := r.result.Available
	passed, batch := make([]*Candidate, len(available.Clusters)), batch{}
	for i, c := range available.Clusters {
		passed[i] = batch.next(len(passed) - i)
		passed[i].Cluster, passed[i].ClusterSet, passed[i].Predicate, passed[i].at = c, available.Eligible[available.sets[i]], -1, i
	}
	r.result.Filters = append(r.result.Filters, Filtered{Filter: Predicate})
	return passed
}

func (r *run) filterByPredicates(answers []answer) []*Candidate {
	available, filtered := r.result.Available, Filtered{Filter: Predicate}
	passing := 0
	for i := range answers {
		r.result.TotalCost += answers[i].match.cost
		if answers[i].match.reason == nil {
			passing++
		}
	}
	if removed := len(answers) - passing; removed > 0 {
		filtered.Removed = make([]Removal, 0, removed)
	}
	batch, passed := batch{}, make([]*Candidate, 0, passing)
	for i := range answers {
		a := &answers[i]
		if a.match.holds != nil {
			r.result.Timed = true
			r.horizon.at(a.match.holds.Until)
		}
		for _, read := range a.reads {
			if !read.until.IsZero() {
				r.horizon.after(read.until)
			}
		}
		if a.match.reason != nil {
			filtered.Removed = append(filtered.Removed, Removal{a.object.Name, a.match.reason})
			continue
		}
		c := batch.next(passing - len(passed))
		c.Cluster, c.ClusterSet, c.Predicate = available.Clusters[i], available.Eligible[available.sets[i]], a.match.predicate
		c.at = i
		passed = append(passed, c)
	}
	r.result.Filters = append(r.result.Filters, filtered)
	return passed
}

func (r *run) filterByTaints(candidates []*Candidate) []*Candidate {
	defer r.observe(KindFilter, TaintToleration)()
	filtered := Filtered{Filter: TaintToleration}
	passed := 0
	for _, c := range candidates {
		verdict := r.taints(c.Cluster)
		if verdict.keeps != nil {
			filtered.Removed = append(filtered.Removed, Removal{c.Cluster.Name, &Untolerated{*verdict.keeps}})
			continue
		}
		r.horizon.at(verdict.until.time)
		// They move up in their batches, so that these stay full.
		if candidates[passed] != c {
			*candidates[passed] = *c
		}
		candidates[passed].Avoided = verdict.avoids
		passed++
	}
	for _, c := range candidates[passed:] {
		*c = Candidate{}
	}
	r.result.Filters = append(r.result.Filters, filtered)
	return candidates[:passed]
}

func (r *run) taints(cluster *clusterv1.ManagedCluster) tainted {
	if len(cluster.Spec.Taints) == 0 {
		return tainted{}
	}
	_, selected := r.former.decisions[cluster.Name]
	return taints(cluster, r.placement.Spec.Tolerations, selected, r.now)
}

// tolerable tells whether the taints of an available cluster let it be selected. If
// they do, when that ends matters.
func (r *run) tolerable(name string) bool {
	clusters := r.result.Available.Clusters
	i, found := slices.BinarySearchFunc(clusters, name, func(c *clusterv1.ManagedCluster, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !found {
		return false
	}
	verdict := r.taints(clusters[i])
	if verdict.keeps == nil {
		r.horizon.at(verdict.until.time)
	}
	return verdict.keeps == nil
}
