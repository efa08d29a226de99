// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

// predicates are ORed; no predicate at all matches everything.
type predicates []*cluster.Selector

// hasExpressions reports whether a Placement has an expression, which takes time.
func hasExpressions(spec *clusterv1beta1.PlacementSpec) bool {
	return slices.ContainsFunc(spec.Predicates, func(p clusterv1beta1.ClusterPredicate) bool {
		return len(p.RequiredClusterSelector.CelSelector.CelExpressions) > 0
	})
}

// match is the verdict of all predicates on one cluster.
type match struct {
	// predicate is the index of the first one that matches, -1 if none does or if
	// there is none.
	predicate int
	// reason is nil if the cluster matches.
	reason Reason
	// cost is that of all evaluations, in CEL cost units.
	cost uint64
	// timed is set if an expression has read now().
	timed bool
}

// What a Placement says is compiled for it, so that all of it together is bounded.
const (
	// MaxExpressions is how many CEL expressions a Placement may have, and MaxExpressionBytes how many
	// bytes they may have together.
	MaxExpressions     = 64
	MaxExpressionBytes = 256 << 10
	// MaxParts is how many predicates a Placement may have, and how many prioritizers and decision groups. Each is
	// applied to each cluster.
	MaxParts = 128
	// MaxValues is how many labels, requirements with their values, tolerations and sets it may have together.
	MaxValues = 4096
)

// checkParts returns an error if the Placement has too many parts. The API server bounds its bytes only, and most parts may
// be empty.
func checkParts(spec *clusterv1beta1.PlacementSpec) error {
	groups := spec.DecisionStrategy.GroupStrategy.DecisionGroups
	for _, of := range []struct {
		name  string
		count int
	}{{"predicates", len(spec.Predicates)}, {"prioritizers", len(spec.PrioritizerPolicy.Configurations)}, {"decision groups", len(groups)}} {
		if of.count > MaxParts {
			return fmt.Errorf("there are %d %s, at most %d are looked at: use fewer, or several Placements", of.count, of.name, MaxParts)
		}
	}
	values := len(spec.Tolerations) + len(spec.ClusterSets)
	for i := range spec.Predicates {
		of := &spec.Predicates[i].RequiredClusterSelector
		values += valuesIn(&of.LabelSelector, &of.ClaimSelector)
	}
	for i := range groups {
		values += valuesIn(&groups[i].ClusterSelector.LabelSelector, &groups[i].ClusterSelector.ClaimSelector)
	}
	if values > MaxValues {
		return fmt.Errorf("there are %d labels, requirements, values, tolerations and sets together, at most %d are looked at: use fewer, or several Placements",
			values, MaxValues)
	}
	return nil
}

func valuesIn(labels *metav1.LabelSelector, claims *clusterv1beta1.ClusterClaimSelector) int {
	values := len(labels.MatchLabels)
	for _, requirements := range [][]metav1.LabelSelectorRequirement{labels.MatchExpressions, claims.MatchExpressions} {
		for i := range requirements {
			values += 1 + len(requirements[i].Values)
		}
	}
	return values
}

// checkTexts returns an error if the expressions are too many, or too long together.
func checkTexts(spec *clusterv1beta1.PlacementSpec) error {
	expressions, bytes := 0, 0
	for i := range spec.Predicates {
		for _, text := range spec.Predicates[i].RequiredClusterSelector.CelSelector.CelExpressions {
			expressions, bytes = expressions+1, bytes+len(text)
		}
	}
	if expressions <= MaxExpressions && bytes <= MaxExpressionBytes {
		return nil
	}
	return fmt.Errorf("there are %d expressions with %d bytes together, at most %d with %d bytes are compiled for a Placement: use fewer or shorter ones, or several Placements",
		expressions, bytes, MaxExpressions, MaxExpressionBytes)
}

func compilePredicates(ctx context.Context, environment *cluster.Environment, spec *clusterv1beta1.PlacementSpec, wrong *misconfigurations) (predicates, error) {
	if err := checkTexts(spec); err != nil {
		wrong.add(Predicate, field.NewPath("spec", "predicates"), err.Error())
		return nil, nil
	}
	var result predicates
	for i := range spec.Predicates {
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector")
		selector, err := environment.Compile(ctx, spec.Predicates[i].RequiredClusterSelector, path)
		if err := wrong.addSelector(Predicate, err); err != nil {
			return nil, err
		}
		result = append(result, selector)
	}
	return result, nil
}

// match asks the predicates in order until one matches. A failed one does not
// match, as an error in CEL's || does not matter if the other side is true. One that
// takes too long says nothing: with more time it might match. late is its failure, and then the
// rest says nothing either.
func (p predicates) match(alarm *alarm, of *clusterv1.ManagedCluster, hub cluster.Hub) (result match, late error) {
	result = match{predicate: -1}
	if len(p) == 0 {
		return result, nil
	}
	object, failures := cluster.New(of), []error(nil)
	var unmatched []*field.Path
	for i, selector := range p {
		verdict, err := selector.Match(alarm.start(), object, hub)
		alarm.stop()
		result.cost += verdict.Cost
		result.timed = result.timed || verdict.Timed
		switch {
		case deadlineIn(err) != nil:
			return result, err
		case err != nil:
			failures = append(failures, err)
		case verdict.Matches:
			result.predicate = i
			return result, nil
		default:
			unmatched = append(unmatched, verdict.Unmatched)
		}
	}
	if len(failures) > 0 {
		result.reason = &Failed{errors.Join(failures...)}
	} else {
		result.reason = &Unmatched{unmatched}
	}
	return result, nil
}

// scoreNames are the AddOnPlacementScores that any of the predicates reads.
func (p predicates) scoreNames() cluster.ScoreNames {
	result := cluster.ScoreNames{Names: sets.New[string]()}
	for _, selector := range p {
		if selector != nil {
			names := selector.ScoreNames()
			result.Names = result.Names.Union(names.Names)
			result.Computed = result.Computed || names.Computed
		}
	}
	return result
}
