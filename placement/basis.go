// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"reflect"
	"slices"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/plan"
	"github.com/celset/celset/placement/internal/prioritizer"
	"github.com/celset/celset/placement/internal/spread"
)

// When a cluster changes, every Placement that may choose it has to be decided, and most of them would be decided as
// before: most changes are a condition, or a version of an agent. If the hub has what the last result says, nothing
// has changed since but some clusters, and these are alike in all that the Placement reads, then the last result
// stands. What a Placement reads of a cluster is:
//
//   - what the predicates say of it,
//   - the set that it is in, and its taints,
//   - the amounts that prioritizers of the Placement read,
//   - the labels and claims that it is spread over, if others would be selected because of them, and all of them if
//     there are decision groups, or if a condition names what clusters have.

// lastResult is what the last result of a Placement was made from.
type lastResult struct {
	inputs
	// confirmed is set if nothing had to be written for it.
	confirmed bool
	// at is when it was made, until when time changes something, zero if it does not.
	at, until time.Time
	// available are the clusters that there were to choose from. Other Placements have the same ones.
	available *hub.Availability
	scores    cluster.ScoreFinder
	ranking   *spread.Ranking
	// named is set if a condition names labels or claims of the clusters, namesSets if it names the sets that are bound.
	named, namesSets bool
}

// inputs are what a result depends on besides time, clusters and scores.
type inputs struct {
	plan *plan.Plan
	// placement has its status, too.
	placement hub.Version
	decisions *hub.Decisions
	// own is the version of the PlacementDecisions of the Placement, all that of all, if they matter.
	own, all uint64
}

// inputsOf returns the inputs of a decision. all and own are versions of the PlacementDecisions. Where all clusters are selected that there are, other Placements are not
// followed for the scores that Balance gives.
func inputsOf(compiled *plan.Plan, placement *clusterv1beta1.Placement, decisions *hub.Decisions, all, own uint64) inputs {
	result := inputs{compiled, hub.VersionOf(placement), decisions, own, 0}
	spec := &placement.Spec
	if compiled.Balances && (spec.NumberOfClusters != nil || len(compiled.Spread) > 0 || spec.SortBy == clusterv1beta1.PlacementSortByScore) {
		result.all = all
	}
	return result
}

// made returns what a result was made from, besides what is set by the caller. nil is never known again: something
// has no version, or the hub has nothing of the Placement, and a decision has one object at least, so that something
// has to be written.
func made(from inputs, available *hub.Availability, now time.Time) *lastResult {
	if available.Fleeting || !from.placement.Rememberable() || from.own == 0 {
		return nil
	}
	return &lastResult{inputs: from, at: now, available: available}
}

// mayStand reports whether a result may stand at a time, as far as its inputs and AddOnPlacementScores say.
func (l *lastResult) mayStand(now inputs, at time.Time, scores cluster.ScoreFinder) bool {
	return l.inputs == now && !at.Before(l.at) && (l.until.IsZero() || at.Before(l.until)) &&
		(!l.plan.ReadsScores() || sameScores(l.scores, scores))
}

// readsTheSame reports whether the steps after the predicates read the same in the clusters that are available now, but
// for topologies.
func (l *lastResult) readsTheSame(now *hub.Availability) bool {
	return !now.Fleeting && (!l.namesSets || slices.Equal(now.Bound, l.available.Bound)) && now.SameSets(l.available) &&
		slices.EqualFunc(now.Clusters, l.available.Clusters, l.alike)
}

// picksTheSame reports whether the same clusters are selected though some may be in other topologies. It notes these.
func (l *lastResult) picksTheSame(now *hub.Availability, wanted *int32) bool {
	moved := l.moved(now.Clusters)
	return len(moved) == 0 || l.ranking.PicksTheSame(moved, now.Clusters, wanted)
}

// moved are the places of clusters that are in other topologies than before.
func (l *lastResult) moved(clusters []*clusterv1.ManagedCluster) (moved []int) {
	if len(l.plan.Spread) == 0 {
		return nil
	}
	before := l.available.Clusters
	for i, c := range clusters {
		if c != before[i] && slices.ContainsFunc(l.plan.Spread, func(s spread.Constraint) bool {
			one, is := s.Topology(before[i])
			other, isOther := s.Topology(c)
			return one != other || is != isOther
		}) {
			moved = append(moved, i)
		}
	}
	return moved
}

// alike reports whether two objects are versions of a cluster in which the steps after the predicates read the
// same, but for topologies.
func (l *lastResult) alike(a, b *clusterv1.ManagedCluster) bool {
	if a == b {
		return true
	}
	if a.Name != b.Name || !slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, sameTaint) {
		return false
	}
	for _, resource := range l.plan.Amounts {
		one, is := prioritizer.AmountOf(&a.Status, resource)
		other, isOther := prioritizer.AmountOf(&b.Status, resource)
		if one != other || is != isOther {
			return false
		}
	}
	return len(l.plan.Groups) == 0 && !l.named || maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Status.ClusterClaims, b.Status.ClusterClaims)
}

func sameTaint(a, b clusterv1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(&b.TimeAdded)
}

// sameScores compares what finds scores, as far as it can be compared.
func sameScores(a, b cluster.ScoreFinder) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
