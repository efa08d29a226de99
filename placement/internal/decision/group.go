// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
)

// GroupSelector is a decision group that the Placement names, with the selector of its clusters.
type GroupSelector struct {
	name     string
	selector *cluster.Selector
}

// GroupsOf compiles the selectors of the decision groups. It keeps their order, and adds mistakes to wrong.
func GroupsOf(environment *cluster.Environment, strategy *clusterv1beta1.GroupStrategy, wrong *finding.Misconfigurations) []GroupSelector {
	path := field.NewPath("spec", "decisionStrategy", "groupStrategy")
	if _, err := groupLength(strategy.ClustersPerDecisionGroup, 1); err != nil {
		wrong.Add(finding.DecisionGroups, path.Child("clustersPerDecisionGroup"), err.Error()+"; use a number or a percentage")
	}
	var result []GroupSelector
	for i, from := range strategy.DecisionGroups {
		at := path.Child("decisionGroups").Index(i)
		if from.GroupName == "" {
			wrong.Add(finding.DecisionGroups, at.Child("groupName"), "a decision group must have a name")
		}
		for _, message := range validation.IsValidLabelValue(from.GroupName) {
			wrong.Add(finding.DecisionGroups, at.Child("groupName"), fmt.Sprintf("%q: %s", from.GroupName, message))
		}
		// The selector has no expressions, so compiling it never waits.
		selector, err := environment.Compile(context.Background(), clusterv1beta1.ClusterSelector{
			LabelSelector: from.ClusterSelector.LabelSelector,
			ClaimSelector: from.ClusterSelector.ClaimSelector,
		}, at.Child("groupClusterSelector"))
		if err := wrong.AddSelector(finding.DecisionGroups, err); err != nil {
			wrong.Add(finding.DecisionGroups, at.Child("groupClusterSelector"), err.Error())
		}
		result = append(result, GroupSelector{from.GroupName, selector})
	}
	return result
}

// groupLength returns the maximum number of clusters in a group. of is a number, or a percentage of selected, the number of
// selected clusters. If of is unset or out of range, groupLength returns selected.
func groupLength(of intstr.IntOrString, selected int) (int, error) {
	length, err := intstr.GetScaledValueFromIntOrPercent(&of, selected, true)
	if err != nil {
		return 0, err
	}
	if length <= 0 || length > selected {
		length = selected
	}
	return length, nil
}

// piece is a decision group with its clusters.
type piece struct {
	name    string
	members []member
}

// member is a selected cluster with its entry in a PlacementDecision.
type member struct {
	candidate *candidate.Candidate
	decision  clusterv1beta1.ClusterDecision
}

// divide returns the groups that the Placement names, in order, and then a group of all other clusters. It splits a group that
// is too long. If there are no clusters, it returns one empty group.
func divide(ctx context.Context, members []member, groups []GroupSelector, clustersPerGroup intstr.IntOrString, now time.Time) []piece {
	length, err := groupLength(clustersPerGroup, len(members))
	if err != nil {
		length = len(members)
	}
	var result []piece
	cut := func(name string, members []member) {
		for part := range slices.Chunk(members, max(1, length)) {
			result = append(result, piece{name, part})
		}
	}
	for _, group := range groups {
		var taken []member
		taken, members = split(ctx, group.selector, members, now)
		cut(group.name, taken)
	}
	cut("", members)
	if len(result) == 0 {
		result = []piece{{}}
	}
	return result
}

// split separates the members that match the selector from the others. Selectors of groups have no expressions, so matching
// never fails.
func split(ctx context.Context, selector *cluster.Selector, members []member, now time.Time) (matching, others []member) {
	for _, m := range members {
		if verdict, err := selector.Match(ctx, cluster.New(m.candidate.Cluster), cluster.Hub{Now: now}); err == nil && verdict.Matches {
			matching = append(matching, m)
		} else {
			others = append(others, m)
		}
	}
	return matching, others
}

// orderByScore sorts members by score, highest first. Members with equal scores keep their order by name.
func orderByScore(members []member) {
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(b.decision.Score, a.decision.Score) })
}
