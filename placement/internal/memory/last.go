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

// Last holds the inputs of the last result of a Placement, to check whether the result is still valid. A change of a cluster
// concerns every Placement that may select the cluster. But most changes affect only a condition or the version of an agent,
// and then most decisions stay the same. So the last result is valid if it is on the hub, and if only clusters have changed
// since, in fields that the Placement does not read. A Placement reads from a cluster:
//
//   - the fields that the verdict of the predicates depends on,
//   - the sets that the cluster is in, and its taints,
//   - the amounts that prioritizers of the Placement compare,
//   - its topologies, if they change which candidates are picked,
//   - all labels and claims, if there are decision groups, or if a condition lists labels or claims.
type Last struct {
	Inputs
	// Confirmed is set after the result was found on the hub.
	Confirmed bool
	// at is the time of the decision. Until is the next time at which the result may change. It is zero if the result does not
	// depend on the time.
	at, Until time.Time
	// Available holds the clusters that the Placement may select. Other Placements share it.
	Available *hub.Availability
	Scores    cluster.ScoreFinder
	Ranking   *spread.Ranking
	// Named is set if a condition lists labels or claims of clusters. NamesSets is set if a condition lists the bound sets.
	Named, NamesSets bool
}

// Inputs holds the inputs of a decision that are compared first. Time, clusters and scores are compared separately.
type Inputs struct {
	plan *plan.Plan
	// placement is the version of the Placement. It changes with its status, too.
	placement hub.Version
	decisions *hub.Decisions
	// own is the version of the Placement's PlacementDecisions. all is the version of all PlacementDecisions on the hub, or 0 if
	// other Placements don't matter.
	own, all uint64
}

// InputsOf returns the inputs of a decision. all and own are the versions of all PlacementDecisions and of the Placement's own.
// all is ignored if every available cluster is selected anyway, because other Placements then influence only scores.
func InputsOf(compiled *plan.Plan, placement *clusterv1beta1.Placement, decisions *hub.Decisions, all, own uint64) Inputs {
	result := Inputs{compiled, hub.VersionOf(placement), decisions, own, 0}
	spec := &placement.Spec
	if compiled.ReadsOthers && (spec.NumberOfClusters != nil || len(compiled.Spread) > 0 || spec.SortBy == clusterv1beta1.PlacementSortByScore) {
		result.all = all
	}
	return result
}

// NewLast returns a Last with its inputs. The caller sets the other fields. NewLast returns nil if the result can't be reused:
// an object has no version, or the hub has no PlacementDecision of the Placement yet.
func NewLast(from Inputs, available *hub.Availability, now time.Time) *Last {
	if available.Transient || !from.placement.Rememberable() || from.own == 0 {
		return nil
	}
	return &Last{Inputs: from, at: now, Available: available}
}

// MayBeValid reports whether the result may still be valid: the inputs, the AddOnPlacementScores and the time permit it. It
// does not compare clusters.
func (l *Last) MayBeValid(now Inputs, at time.Time, scores cluster.ScoreFinder) bool {
	return l.Inputs == now && !at.Before(l.at) && (l.Until.IsZero() || at.Before(l.Until)) &&
		(!l.plan.ReadsScores() || sameScores(l.Scores, scores))
}

// ReadsTheSame reports whether the steps after the predicates read the same values from the clusters in now as for the last
// result. It does not compare topologies.
func (l *Last) ReadsTheSame(now *hub.Availability) bool {
	return !now.Transient && (!l.NamesSets || slices.Equal(now.Bound, l.Available.Bound)) && now.SameSets(l.Available) &&
		slices.EqualFunc(now.Clusters, l.Available.Clusters, l.equivalent)
}

// PicksTheSame reports whether spreading selects the same clusters with their current topologies.
func (l *Last) PicksTheSame(now *hub.Availability, wanted *int32) bool {
	moved := l.moved(now.Clusters)
	return len(moved) == 0 || l.Ranking.PicksTheSame(moved, now.Clusters, wanted)
}

// moved returns the indices of the clusters whose topologies have changed since the last result.
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

// equivalent reports whether the steps after the predicates read the same values from a and b, two versions of a cluster. It
// does not compare topologies.
func (l *Last) equivalent(a, b *clusterv1.ManagedCluster) bool {
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

// sameScores reports whether both finders are equal. It returns false if they can't be compared.
func sameScores(a, b cluster.ScoreFinder) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
