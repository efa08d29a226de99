// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// filter returns the clusters that pass both filters, in order of their names, and
// those of the removed ones that could not be evaluated.
func (r *run) filter(memory *memory) (passed []*Candidate, failed []Removal, err error) {
	passed, err = r.filterByPredicates(memory)
	if err != nil {
		return nil, nil, err
	}
	for _, removal := range r.result.Filters[0].Removed {
		if _, ok := removal.Reason.(*Failed); ok {
			failed = append(failed, removal)
		}
	}
	return r.filterByTaints(passed), failed, nil
}

func (r *run) filterByPredicates(memory *memory) ([]*Candidate, error) {
	defer r.observe(KindFilter, Predicate)()
	available, filtered := r.result.Available, Filtered{Filter: Predicate}
	answers, err := r.matches(memory, available.Clusters)
	if err != nil {
		return nil, err
	}
	memory.answers, memory.begun = answers, begun{}
	if r.result.Overrun != nil {
		memory.begun.Time = r.clock
	}
	if len(r.plan.predicates) > 0 {
		r.result.Remembered = len(answers) - r.result.Evaluated - r.skipped
	}
	passing := 0
	for i := range answers {
		r.result.TotalCost += answers[i].match.cost
		if answers[i].match.reason == nil {
			passing++
		}
	}
	backing, passed := make([]Candidate, 0, passing), make([]*Candidate, 0, passing)
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
			filtered.Removed = append(filtered.Removed, Removal{a.name, a.match.reason})
			continue
		}
		backing = append(backing, Candidate{
			Cluster:    available.Clusters[i],
			ClusterSet: available.Eligible[available.sets[i]],
			Predicate:  a.match.predicate,
			index:      i,
		})
		passed = append(passed, &backing[len(backing)-1])
	}
	r.result.Filters = append(r.result.Filters, filtered)
	return passed, nil
}

func (r *run) filterByTaints(candidates []*Candidate) []*Candidate {
	defer r.observe(KindFilter, TaintToleration)()
	filtered := Filtered{Filter: TaintToleration}
	passed := candidates[:0]
	for _, c := range candidates {
		verdict := r.taints(c.Cluster)
		if verdict.keeps != nil {
			filtered.Removed = append(filtered.Removed, Removal{c.Cluster.Name, &Untolerated{*verdict.keeps}})
			continue
		}
		r.horizon.at(verdict.until.time)
		c.Avoided = verdict.avoids
		passed = append(passed, c)
	}
	r.result.Filters = append(r.result.Filters, filtered)
	return passed
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
