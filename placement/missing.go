// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/apis/nearest"
)

// A name that no cluster has is mostly misspelt, and valid all the same. So the condition PlacementSatisfied says which
// names of labels, claims and scores are on no cluster, what there is instead, and which part of a predicate ruled the
// clusters out. It says nothing of what the Placement does not read: a change of that would not make it be decided again.
// Where it names labels or claims, a change of any of these does (lastResult.named). Where it names scores, the result reads
// all scores (Result.Reads), and where it names sets, all bindings of the namespace matter (Result.NamesSets).

// missing adds something that no cluster has, with what there is instead.
func (r *report) missing(what, name string, there sets.Set[string]) {
	if len(r.lacking) >= mostLacking {
		return
	}
	message := what + " " + strconv.Quote(name)
	names := sets.List(there)
	switch near := nearest.DidYouMean("", name, slices.Values(names)); {
	case near != "":
		message += near
	case len(names) > 0:
		message += "; there is " + firstOf(names)
	}
	r.lacking = append(r.lacking, message)
}

// lacks is what missing has added, as the end of a message.
func (r *report) lacks() string {
	if len(r.lacking) == 0 {
		return ""
	}
	return "; " + strings.Join(r.lacking[:min(mostLacking, len(r.lacking))], "; ")
}

// mostLacking is how many a condition names.
const mostLacking = 8

// missingSets finds the names in spec.clusterSets that are not bound to the namespace.
func (r *run) missingSets() {
	bound := r.result.Available.Bound
	for i, name := range r.placement.Spec.ClusterSets {
		if len(bound) > 0 && !slices.Contains(bound, name) {
			r.result.NamesSets = true
			r.report.missing(fmt.Sprintf("spec.clusterSets[%d]: the namespace is bound to no ManagedClusterSet", i), name, sets.New(bound...))
		}
	}
}

// A ScoreNamer is a [cluster.ScoreFinder] that has the names of all AddOnPlacementScores of a cluster. With it, a
// condition says which one a misspelt name is meant for.
type ScoreNamer interface {
	// ScoreNames returns the names in a namespace, in any order.
	ScoreNames(namespace string) []string
}

// missingScore adds the name of an AddOnPlacementScore that none of some clusters has.
func (r *run) missingScore(what, name string, clusters iter.Seq[*clusterv1.ManagedCluster]) {
	there := sets.New[string]()
	if namer, ok := r.snapshot.Scores.(ScoreNamer); ok {
		r.result.Reads.Computed = true
		for c := range clusters {
			there.Insert(namer.ScoreNames(c.Name)...)
		}
	}
	r.report.missing(what, name, there)
}

// unread finds the AddOnPlacementScores that a predicate reads and no cluster has, if the predicates failed on clusters.
func (r *run) unread(failed []Removal) {
	if len(failed) == 0 {
		return
	}
	clusters := r.result.Available.Clusters
	for i, selector := range r.plan.predicates {
		for _, name := range sets.List(selector.ScoreNames().Names) {
			has := func(c *clusterv1.ManagedCluster) bool {
				object, err := r.snapshot.score(c.Name, name)
				return err != nil || object != nil
			}
			if !slices.ContainsFunc(clusters, has) {
				path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector", "celSelector")
				r.missingScore(path.String()+": no cluster has the AddOnPlacementScore", name, slices.Values(clusters))
			}
		}
	}
}

// missingKey adds the key of a label or claim if none of some clusters has it.
func (r *run) missingKey(path *field.Path, clusters []*clusterv1.ManagedCluster, what string, claims bool, key string) {
	has := (&spreadConstraint{key: key, claims: claims}).topology
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
	r.named = true
	r.report.missing(path.String()+": no "+what+" has the "+kind, key, there)
}

// missingTopologies finds the spread constraints with a key that no candidate has.
func (r *run) missingTopologies(candidates []*Candidate) {
	if len(r.plan.spread) == 0 {
		return
	}
	clusters := make([]*clusterv1.ManagedCluster, len(candidates))
	for i, c := range candidates {
		clusters[i] = c.Cluster
	}
	for _, s := range r.plan.spread {
		r.missingKey(s.path, clusters, "candidate", s.claims, s.key)
	}
}

// unmatched says which parts of the predicates ruled out the clusters, if no predicate matches any, and which labels and
// claims no cluster has.
func (r *run) unmatched() {
	available := r.result.Available.Clusters
	if len(r.result.Filters[0].Removed) < len(available) {
		return
	}
	for i := range r.placement.Spec.Predicates {
		counts := map[string]int{}
		for _, removal := range r.result.Filters[0].Removed {
			if reason, is := removal.Reason.(*Unmatched); is {
				counts[reason.Parts[i].String()]++
			}
		}
		var texts []string
		for _, part := range slices.Sorted(maps.Keys(counts)) {
			texts = append(texts, fmt.Sprintf("%s ruled out %d", part, counts[part]))
		}
		if len(texts) > 0 {
			r.report.lacking = append(r.report.lacking, strings.Join(texts, ", "))
		}
		selector := &r.placement.Spec.Predicates[i].RequiredClusterSelector
		path := field.NewPath("spec", "predicates").Index(i).Child("requiredClusterSelector")
		for _, key := range slices.Sorted(maps.Keys(selector.LabelSelector.MatchLabels)) {
			r.missingKey(path.Child("labelSelector"), available, "cluster", false, key)
		}
		for _, of := range []struct {
			path         *field.Path
			claims       bool
			requirements []metav1.LabelSelectorRequirement
		}{{path.Child("labelSelector"), false, selector.LabelSelector.MatchExpressions}, {path.Child("claimSelector"), true, selector.ClaimSelector.MatchExpressions}} {
			for _, requirement := range of.requirements {
				if requirement.Operator == metav1.LabelSelectorOpIn || requirement.Operator == metav1.LabelSelectorOpExists {
					r.missingKey(of.path, available, "cluster", of.claims, requirement.Key)
				}
			}
		}
	}
}
