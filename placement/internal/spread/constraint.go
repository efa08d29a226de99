// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/finding"
)

const maxSpreadConstraints = 8

// Constraint is a spread constraint of a Placement with its defaults set.
type Constraint struct {
	Path    *field.Path
	Key     string
	Claims  bool
	maxSkew int
	hard    bool
}

// Constraints returns the spread constraints of a policy, and adds mistakes to wrong.
func Constraints(policy *clusterv1beta1.SpreadPolicy, wrong *finding.Misconfigurations) []Constraint {
	path := field.NewPath("spec", "spreadPolicy", "spreadConstraints")
	if n := len(policy.SpreadConstraints); n > maxSpreadConstraints {
		wrong.Add(finding.Spread, path, fmt.Sprintf("%d constraints are too many; use at most %d", n, maxSpreadConstraints))
		return nil
	}
	var result []Constraint
	for i, term := range policy.SpreadConstraints {
		result = append(result, constraintOf(&term, path.Index(i), wrong))
	}
	return result
}

func constraintOf(term *clusterv1beta1.SpreadConstraintsTerm, path *field.Path, wrong *finding.Misconfigurations) Constraint {
	if term.TopologyKey == "" {
		wrong.Add(finding.Spread, path.Child("topologyKey"), "the key is empty; set it to the key of a label or a claim of clusters")
	}
	switch term.TopologyKeyType {
	case clusterv1beta1.TopologyKeyTypeLabel, clusterv1beta1.TopologyKeyTypeClaim:
	default:
		wrong.Add(finding.Spread, path.Child("topologyKeyType"), fmt.Sprintf("unknown type %q; use Label or Claim", term.TopologyKeyType))
	}
	if term.MaxSkew < 0 {
		wrong.Add(finding.Spread, path.Child("maxSkew"), fmt.Sprintf("the skew is %d, but must be at least 1", term.MaxSkew))
	}
	switch term.WhenUnsatisfiable {
	case "", clusterv1beta1.ScheduleAnyway, clusterv1beta1.DoNotSchedule:
	default:
		wrong.Add(finding.Spread, path.Child("whenUnsatisfiable"),
			fmt.Sprintf("unknown action %q; use ScheduleAnyway or DoNotSchedule", term.WhenUnsatisfiable))
	}
	return Constraint{
		Path:    path,
		Key:     term.TopologyKey,
		Claims:  term.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim,
		maxSkew: max(1, int(term.MaxSkew)),
		hard:    term.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule,
	}
}

// Topology returns the cluster's value of the label or claim that the constraint names.
func (s *Constraint) Topology(of *clusterv1.ManagedCluster) (value string, present bool) {
	if s.Claims {
		return cluster.New(of).Claims().Lookup(s.Key)
	}
	return cluster.New(of).Labels().Lookup(s.Key)
}

// Matters reports whether the constraints can change the selection. limit is the maximum number of selected clusters.
// candidates is the number of candidates.
func Matters(constraints []Constraint, limit, candidates int) bool {
	return slices.ContainsFunc(constraints, func(s Constraint) bool { return s.hard || limit < candidates })
}
