// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
)

// MaxSliceLength is how many clusters one PlacementDecision may have.
const MaxSliceLength = 100

// Decision is what the PlacementDecisions of a Placement are to say.
type Decision struct {
	// Groups are at least one, in order of their indices from 0.
	Groups []Group
	// Clusters is how many clusters they have.
	Clusters int
	// ScoresUpdated tells that some score differs from what the PlacementDecisions
	// say now.
	ScoresUpdated bool
}

// Group is a decision group.
type Group struct {
	// Name is what the Placement calls it, "" for the clusters in none of its groups.
	// Several may have the same name.
	Name string
	// Slices are at least one, in order of the numbers in their names, which may have
	// gaps. Only that of an empty group is empty.
	Slices []Slice
}

// Slice is what one PlacementDecision says.
type Slice struct {
	// Name is that of the PlacementDecision.
	Name string
	// Decisions are at most [MaxSliceLength], in the order of spec.sortBy. In order of
	// scores the next slice of the group continues where this one ends; names are in
	// order in each slice only.
	Decisions []clusterv1beta1.ClusterDecision
}

// decide makes decisions of the selected candidates, which are sorted by name.
func (r *run) decide(selected []*Candidate) *Decision {
	result := &Decision{Clusters: len(selected)}
	members := r.members(selected)
	for _, m := range members {
		before, chosen := r.former.decisions[m.decision.ClusterName]
		if !chosen || before.Score != m.decision.Score {
			result.ScoresUpdated = true
			break
		}
	}
	pieces := r.divide(members)
	for i, parts := range intoSlices(pieces, r.former.slices, r.placement.Spec.SortBy == clusterv1beta1.PlacementSortByScore) {
		group := Group{Name: pieces[i].name}
		for _, p := range parts {
			group.Slices = append(group.Slices, sliceOf(r.placement.Name, pieces[i].members, p))
		}
		result.Groups = append(result.Groups, group)
	}
	return result
}

func sliceOf(placement string, members []member, p *part) Slice {
	result := Slice{
		Name:      sliceName(placement, p.number),
		Decisions: make([]clusterv1beta1.ClusterDecision, len(p.members)),
	}
	for i, at := range p.members {
		result.Decisions[i] = members[at].decision
	}
	return result
}

// sliceName is the name of the PlacementDecision with a number, from 1.
func sliceName(placement string, number int) string {
	return placement + "-decision-" + strconv.Itoa(number)
}

// sliceNumber is the number in the name of a PlacementDecision, 0 if the name is
// none that a Placement gives.
func sliceNumber(placement, name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, placement+"-decision-"))
	if err != nil || n < 1 || sliceName(placement, n) != name {
		return 0
	}
	return n
}

// members pairs the candidates with their decisions. The scores are those that are
// recorded already, where these may not be updated yet.
func (r *run) members(selected []*Candidate) []member {
	result, limited := make([]member, len(selected)), r.limited(selected)
	reasons, because, reason := map[why]string{}, why{}, ""
	for i, c := range selected {
		score := c.Total
		if limited {
			score = r.former.decisions[c.Cluster.Name].Score
		}
		// That of the one before is that of most.
		if own := (why{c.ClusterSet, c.Predicate}); i == 0 || own != because {
			if _, known := reasons[own]; !known {
				reasons[own] = own.String()
			}
			because, reason = own, reasons[own]
		}
		result[i] = member{c, clusterv1beta1.ClusterDecision{ClusterName: c.Cluster.Name, Reason: reason, Score: score}}
	}
	return result
}

// limited tells whether the recorded scores must stay: the same clusters are
// selected, and their scores were updated less than spec.scoreRateLimit ago.
func (r *run) limited(selected []*Candidate) bool {
	last := r.placement.Status.LastScoreUpdateTime
	if last == nil || last.After(r.now) || len(selected) != len(r.former.decisions) {
		return false
	}
	next := last.Add(r.plan.scoreRateLimit)
	if !r.now.Before(next) {
		return false
	}
	differ := false
	for _, c := range selected {
		before, chosen := r.former.decisions[c.Cluster.Name]
		if !chosen {
			return false
		}
		differ = differ || before.Score != c.Total
	}
	if differ {
		r.horizon.at(next)
	}
	return differ
}

// why is why a cluster is selected. Scores are no part of it: they change more often
// than reasons should.
type why struct {
	set       string
	predicate int
}

// String names set and predicate.
func (w why) String() string {
	if w.predicate < 0 {
		return "in ManagedClusterSet " + w.set
	}
	return "in ManagedClusterSet " + w.set + ", matches spec.predicates[" + strconv.Itoa(w.predicate) + "]"
}

// defaultScoreRateLimit is what the API server sets.
const defaultScoreRateLimit = time.Minute

// Objects are the PlacementDecisions that a Placement is to have, and no others.
func (d *Decision) Objects(placement *clusterv1beta1.Placement) []*clusterv1beta1.PlacementDecision {
	var result []*clusterv1beta1.PlacementDecision
	owner := metav1.NewControllerRef(placement, schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"))
	for i, group := range d.Groups {
		for _, slice := range group.Slices {
			result = append(result, &clusterv1beta1.PlacementDecision{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: placement.Namespace,
					Name:      slice.Name,
					Labels: map[string]string{
						clusterv1beta1.PlacementLabel:          placement.Name,
						clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(i),
						clusterv1beta1.DecisionGroupNameLabel:  group.Name,
					},
					OwnerReferences: []metav1.OwnerReference{*owner},
				},
				Status: clusterv1beta1.PlacementDecisionStatus{Decisions: slices.Clone(slice.Decisions)},
			})
		}
	}
	return result
}

// status lists the groups as the status of a Placement does.
func (d *Decision) status() []clusterv1beta1.DecisionGroupStatus {
	result := make([]clusterv1beta1.DecisionGroupStatus, len(d.Groups))
	for i, group := range d.Groups {
		result[i] = clusterv1beta1.DecisionGroupStatus{DecisionGroupIndex: int32(i), DecisionGroupName: group.Name, Decisions: []string{}}
		for _, slice := range group.Slices {
			result[i].Decisions = append(result[i].Decisions, slice.Name)
			result[i].ClustersCount += int32(len(slice.Decisions))
		}
	}
	return result
}

// group is a decision group that the Placement asks for.
type group struct {
	name     string
	selector *cluster.Selector
}

func groupsOf(environment *cluster.Environment, strategy *clusterv1beta1.GroupStrategy, wrong *misconfigurations) []group {
	path := field.NewPath("spec", "decisionStrategy", "groupStrategy")
	if _, err := groupLength(strategy.ClustersPerDecisionGroup, 1); err != nil {
		wrong.add(DecisionGroups, path.Child("clustersPerDecisionGroup"), err.Error()+"; use a number or a percentage")
	}
	var result []group
	for i, from := range strategy.DecisionGroups {
		at := path.Child("decisionGroups").Index(i)
		if from.GroupName == "" {
			wrong.add(DecisionGroups, at.Child("groupName"), "a decision group must have a name")
		}
		for _, message := range validation.IsValidLabelValue(from.GroupName) {
			wrong.add(DecisionGroups, at.Child("groupName"), fmt.Sprintf("%q: %s", from.GroupName, message))
		}
		// It has no expressions, which would have to be waited for.
		selector, err := environment.Compile(context.Background(), clusterv1beta1.ClusterSelector{
			LabelSelector: from.ClusterSelector.LabelSelector,
			ClaimSelector: from.ClusterSelector.ClaimSelector,
		}, at.Child("groupClusterSelector"))
		if err := wrong.addSelector(DecisionGroups, err); err != nil {
			wrong.add(DecisionGroups, at.Child("groupClusterSelector"), err.Error())
		}
		result = append(result, group{from.GroupName, selector})
	}
	return result
}

// groupLength is how many of the selected clusters a group may have: all of them
// if nothing sensible is said.
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

// piece is a decision group that has its clusters.
type piece struct {
	name    string
	members []member
}

// member is a selected cluster with the decision on it.
type member struct {
	candidate *Candidate
	decision  clusterv1beta1.ClusterDecision
}

// divide makes groups of the selected clusters: those that the Placement asks for,
// in its order, then one of the others, each cut to the length of groups. There is
// always a group, if need be an empty one.
func (r *run) divide(members []member) []piece {
	length, err := groupLength(r.placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup, len(members))
	if err != nil {
		length = len(members)
	}
	r.order(members)
	var result []piece
	cut := func(name string, members []member) {
		for part := range slices.Chunk(members, max(1, length)) {
			result = append(result, piece{name, part})
		}
	}
	for _, group := range r.plan.groups {
		var taken []member
		taken, members = r.split(group.selector, members)
		cut(group.name, taken)
	}
	cut("", members)
	if len(result) == 0 {
		result = []piece{{}}
	}
	return result
}

// split separates the members that a selector without CEL matches; it can't fail.
func (r *run) split(selector *cluster.Selector, members []member) (matching, others []member) {
	for _, m := range members {
		if verdict, err := selector.Match(r.ctx, cluster.New(m.candidate.Cluster), cluster.Hub{Now: r.now}); err == nil && verdict.Matches {
			matching = append(matching, m)
		} else {
			others = append(others, m)
		}
	}
	return matching, others
}

// order sorts members, which are sorted by name, as spec.sortBy says.
func (r *run) order(members []member) {
	if r.placement.Spec.SortBy == clusterv1beta1.PlacementSortByScore {
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(b.decision.Score, a.decision.Score) })
	}
}
