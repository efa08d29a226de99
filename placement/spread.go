// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
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
	s := newSpreading(r.plan.spread, candidates)
	for _, rank := range s.pick(limit) {
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
