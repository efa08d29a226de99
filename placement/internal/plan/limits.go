// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// The parts of a Placement are compiled and applied to every cluster, so their number and size are limited.
const (
	// MaxExpressions is the maximum number of CEL expressions in a Placement. MaxExpressionBytes is the maximum of their total
	// size.
	MaxExpressions     = 64
	MaxExpressionBytes = 256 << 10
	// MaxParts is the maximum number of predicates. The numbers of prioritizers and of decision groups have the same limit.
	MaxParts = 128
	// MaxValues is the maximum total number of labels, requirements with their values, tolerations and sets.
	MaxValues = 4096
)

// checkParts returns an error if the Placement has too many parts. The API server limits only the size of an object in bytes,
// and most parts may be empty.
func checkParts(spec *clusterv1beta1.PlacementSpec) error {
	groups := spec.DecisionStrategy.GroupStrategy.DecisionGroups
	for _, of := range []struct {
		name  string
		count int
	}{{"predicates", len(spec.Predicates)}, {"prioritizers", len(spec.PrioritizerPolicy.Configurations)}, {"decision groups", len(groups)}} {
		if of.count > MaxParts {
			return fmt.Errorf("there are %d %s, at most %d are allowed: use fewer, or several Placements", of.count, of.name, MaxParts)
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
		return fmt.Errorf("there are %d labels, requirements, values, tolerations and sets together, but at most %d are allowed: use fewer, or several Placements",
			values, MaxValues)
	}
	return nil
}

// valuesIn returns the number of labels, requirements and values in a label selector and a claim selector.
func valuesIn(labels *metav1.LabelSelector, claims *clusterv1beta1.ClusterClaimSelector) int {
	values := len(labels.MatchLabels)
	for _, requirements := range [][]metav1.LabelSelectorRequirement{labels.MatchExpressions, claims.MatchExpressions} {
		for i := range requirements {
			values += 1 + len(requirements[i].Values)
		}
	}
	return values
}

// checkTexts returns an error if the Placement has too many expressions, or if their total size is too large.
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
	return fmt.Errorf("there are %d expressions with %d bytes together, but a Placement may have at most %d expressions with %d bytes: use fewer or shorter expressions, or several Placements",
		expressions, bytes, MaxExpressions, MaxExpressionBytes)
}
