// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package misspelling finds names in a Placement that no cluster has. Such names are valid, but probably misspelt. The
// condition PlacementSatisfied reports missing labels, claims, scores and sets, and suggests existing names. It also reports
// which part of a predicate excluded the clusters. It reports only names that the Placement reads, because changes of other
// names don't cause a new decision. If a message lists existing names, the findings record that, so that a change of these
// names causes a new decision.
package misspelling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/predicate"
	"github.com/celset/celset/placement/internal/spread"
)

// Sets reports names in spec.clusterSets that are not in bound, the sets that are bound to the namespace.
func Sets(spec *clusterv1beta1.PlacementSpec, bound []string, found *finding.Findings) {
	for i, name := range spec.ClusterSets {
		if len(bound) > 0 && !slices.Contains(bound, name) {
			found.Sets = true
			found.AddMissing(fmt.Sprintf("spec.clusterSets[%d]: no ManagedClusterSetBinding in the namespace binds ManagedClusterSet", i), name, sets.New(bound...))
		}
	}
}

// Scores reports AddOnPlacementScores that the predicates read but no cluster has.
func Scores(of predicate.Set, snapshot *hub.Snapshot, clusters []*clusterv1.ManagedCluster, found *finding.Findings) {
	for i, selector := range of.Selectors {
		for _, name := range sets.List(selector.ScoreNames().Names) {
			has := func(c *clusterv1.ManagedCluster) bool {
				object, err := snapshot.Score(c.Name, name)
				return err != nil || object != nil
			}
			if !slices.ContainsFunc(clusters, has) {
				path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector", "celSelector")
				found.AddMissingScore(path.String()+": no cluster has the AddOnPlacementScore", name, snapshot.ScoreNames(slices.Values(clusters)))
			}
		}
	}
}

// missingKey reports a key of a label or claim if none of the clusters has the key.
func missingKey(path *field.Path, clusters []*clusterv1.ManagedCluster, what string, claims bool, key string, found *finding.Findings) {
	has := (&spread.Constraint{Key: key, Claims: claims}).Topology
	if len(clusters) == 0 || slices.ContainsFunc(clusters, func(c *clusterv1.ManagedCluster) bool { _, is := has(c); return is }) {
		return
	}
	there := sets.New[string]()
	for _, c := range clusters {
		if !claims {
			there.Insert(slices.Collect(maps.Keys(c.Labels))...)
			continue
		}
		for _, claim := range c.Status.ClusterClaims {
			there.Insert(claim.Name)
		}
	}
	kind := "label"
	if claims {
		kind = "claim"
	}
	found.Keys = true
	found.AddMissing(path.String()+": no "+what+" has the "+kind, key, there)
}

// Topologies reports spread constraints whose key no candidate has.
func Topologies(constraints []spread.Constraint, candidates []*candidate.Candidate, found *finding.Findings) {
	if len(constraints) == 0 {
		return
	}
	clusters := slices.Collect(candidate.ClustersIn(candidates))
	for _, s := range constraints {
		missingKey(s.Path, clusters, "candidate", s.Claims, s.Key, found)
	}
}

// Unmatched reports, if no cluster matches, which parts of the predicates excluded the clusters, and which labels and claims no
// cluster has.
func Unmatched(spec *clusterv1beta1.PlacementSpec, removed []candidate.Removal, available []*clusterv1.ManagedCluster, found *finding.Findings) {
	if len(removed) < len(available) {
		return
	}
	for i := range spec.Predicates {
		counts := map[string]int{}
		for _, removal := range removed {
			if reason, is := removal.Reason.(*candidate.Unmatched); is {
				counts[reason.Parts[i].String()]++
			}
		}
		var texts []string
		for _, part := range slices.Sorted(maps.Keys(counts)) {
			texts = append(texts, fmt.Sprintf("%s ruled out %d", part, counts[part]))
		}
		if len(texts) > 0 {
			found.Missing = append(found.Missing, strings.Join(texts, ", "))
		}
		selector := &spec.Predicates[i].RequiredClusterSelector
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector")
		for _, key := range slices.Sorted(maps.Keys(selector.LabelSelector.MatchLabels)) {
			missingKey(path.Child("labelSelector"), available, "cluster", false, key, found)
		}
		for _, of := range []struct {
			path         *field.Path
			claims       bool
			requirements []metav1.LabelSelectorRequirement
		}{{path.Child("labelSelector"), false, selector.LabelSelector.MatchExpressions}, {path.Child("claimSelector"), true, selector.ClaimSelector.MatchExpressions}} {
			for _, requirement := range of.requirements {
				if requirement.Operator == metav1.LabelSelectorOpIn || requirement.Operator == metav1.LabelSelectorOpExists {
					missingKey(of.path, available, "cluster", of.claims, requirement.Key, found)
				}
			}
		}
	}
}
