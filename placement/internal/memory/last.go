// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

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

// Last is what the last result of a Placement was made from.
type Last struct {
	Inputs
	// Confirmed is set if nothing had to be written for it.
	Confirmed bool
	// at is the time of the decision, Until the time at which its result may be another one, zero if there is none.
	at, Until time.Time
	// Available are the clusters that there were to choose from. Other Placements have the same ones.
	Available *hub.Availability
	Scores    cluster.ScoreFinder
	Ranking   *spread.Ranking
	// Named is set if a condition names labels or claims of the clusters, NamesSets if it names the sets that are bound.
	Named, NamesSets bool
}

// Inputs are what a result depends on besides time, clusters and scores.
type Inputs struct {
	plan *plan.Plan
	// placement has its status, too.
	placement hub.Version
	decisions *hub.Decisions
	// own is the version of the PlacementDecisions of the Placement, all that of all, if they matter.
	own, all uint64
}

// InputsOf returns the inputs of a decision. all and own are the versions of all PlacementDecisions and of those of the
// Placement. If all available clusters are selected, other Placements don't matter: Balance changes nothing but scores.
func InputsOf(compiled *plan.Plan, placement *clusterv1beta1.Placement, decisions *hub.Decisions, all, own uint64) Inputs {
	result := Inputs{compiled, hub.VersionOf(placement), decisions, own, 0}
	spec := &placement.Spec
	if compiled.Balances && (spec.NumberOfClusters != nil || len(compiled.Spread) > 0 || spec.SortBy == clusterv1beta1.PlacementSortByScore) {
		result.all = all
	}
	return result
}

// NewLast returns what a result was made from, besides what is set by the caller. nil is never known again: something
// has no version, or the hub has nothing of the Placement, and a decision has one object at least, so that something
// has to be written.
func NewLast(from Inputs, available *hub.Availability, now time.Time) *Last {
	if available.Fleeting || !from.placement.Rememberable() || from.own == 0 {
		return nil
	}
	return &Last{Inputs: from, at: now, Available: available}
}

// MayStand reports whether a result may stand at a time, as far as its inputs and AddOnPlacementScores say.
func (l *Last) MayStand(now Inputs, at time.Time, scores cluster.ScoreFinder) bool {
	return l.Inputs == now && !at.Before(l.at) && (l.Until.IsZero() || at.Before(l.Until)) &&
		(!l.plan.ReadsScores() || sameScores(l.Scores, scores))
}

// ReadsTheSame reports whether the steps after the predicates read the same in the clusters that are available now, but
// for topologies.
func (l *Last) ReadsTheSame(now *hub.Availability) bool {
	return !now.Fleeting && (!l.NamesSets || slices.Equal(now.Bound, l.Available.Bound)) && now.SameSets(l.Available) &&
		slices.EqualFunc(now.Clusters, l.Available.Clusters, l.alike)
}

// PicksTheSame reports whether the same clusters are selected though some may be in other topologies. It notes these.
func (l *Last) PicksTheSame(now *hub.Availability, wanted *int32) bool {
	moved := l.moved(now.Clusters)
	return len(moved) == 0 || l.Ranking.PicksTheSame(moved, now.Clusters, wanted)
}

// moved are the places of clusters that are in other topologies than before.
func (l *Last) moved(clusters []*clusterv1.ManagedCluster) (moved []int) {
	if len(l.plan.Spread) == 0 {
		return nil
	}
	before := l.Available.Clusters
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
func (l *Last) alike(a, b *clusterv1.ManagedCluster) bool {
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
	return len(l.plan.Groups) == 0 && !l.Named || maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Status.ClusterClaims, b.Status.ClusterClaims)
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
