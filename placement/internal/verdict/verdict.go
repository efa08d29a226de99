// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"time"
	"unsafe"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/predicate"
)

// Verdicts holds the verdicts of a Placement's predicates on a list of clusters.
type Verdicts struct {
	// Of lists the clusters, sorted by name. The list is shared with other Placements and must not be modified.
	Of []*clusterv1.ManagedCluster
	// On[i] is the verdict on cluster Of[i]. Clusters with equal verdicts may share one.
	On []*Verdict
	// at is the value of now() in the expressions.
	at time.Time
	// Bytes is the estimated size of On in bytes.
	Bytes int
	// firstAttempt is the time of the first attempt at a decision that is not complete. It is zero if the last attempt completed
	// the decision. All attempts use the same value of now(). Otherwise each attempt would discard verdicts that are valid for one
	// tick, and no attempt would complete the decision.
	firstAttempt time.Time
}

// longestDecision is the age at which an incomplete decision starts again with a new value of now().
const longestDecision = time.Minute

// FirstAttempt returns the time of the first attempt at an incomplete decision. If there is no incomplete decision, it returns
// now.
func (v Verdicts) FirstAttempt(now time.Time) time.Time {
	if since := now.Sub(v.firstAttempt); v.firstAttempt.IsZero() || since < 0 || since >= longestDecision {
		return now
	}
	return v.firstAttempt
}

// Account returns the total cost of the verdicts. timed reports whether a verdict has read now(). next receives the times at
// which verdicts may change. tick is the time at which the value of now() changes next.
func (v Verdicts) Account(tick time.Time, next *finding.Wakeup) (cost uint64, timed bool) {
	for _, is := range v.On {
		cost += is.Cost
		timed = timed || is.Timed
		for _, read := range is.reads {
			if !read.until.IsZero() {
				next.After(read.until)
			}
		}
	}
	if timed {
		next.At(tick)
	}
	return cost, timed
}

// Verdict is the result of all predicates of a Placement on one cluster.
type Verdict struct {
	predicate.Match
	// reads lists the AddOnPlacementScores that the expressions read.
	reads []read
	// transient is set if an object on which the verdict depends has no version, so the verdict must not be reused.
	transient bool
	// PreRelease is set if the cluster runs a pre-release of Kubernetes and an expression compares its version with that release.
	PreRelease bool
	// counted is used only by count, so that a verdict that several clusters share is counted once.
	counted bool
}

// read describes one AddOnPlacementScore that an expression read. version is empty if the object does not exist.
type read struct {
	name    string
	version hub.Version
	// until is the time at which the object expires. It is zero if the object never expires or has already expired.
	until   time.Time
	expired bool
}

// readOf returns the read of the AddOnPlacementScore with this name. object is nil if the AddOnPlacementScore does not exist.
func readOf(name string, object *clusterv1alpha1.AddOnPlacementScore, now time.Time) read {
	result := read{name: name}
	if object == nil {
		return result
	}
	result.version = hub.VersionOf(object)
	if until := object.Status.ValidUntil; until != nil {
		if result.expired = now.After(until.Time); !result.expired {
			result.until = until.Time
		}
	}
	return result
}

// alignedWith returns the verdicts in the order of clusters. A cluster whose name is not in v gets a nil verdict.
func (v Verdicts) alignedWith(clusters []*clusterv1.ManagedCluster) Verdicts {
	if slices.EqualFunc(v.Of, clusters, func(a, b *clusterv1.ManagedCluster) bool { return a == b || a.Name == b.Name }) {
		return v
	}
	result := Verdicts{Of: make([]*clusterv1.ManagedCluster, len(clusters)), On: make([]*Verdict, len(clusters)), at: v.at}
	at := 0
	for i, c := range clusters {
		for at < len(v.Of) && v.Of[at].Name < c.Name {
			at++
		}
		if at < len(v.Of) && v.Of[at].Name == c.Name {
			result.Of[i], result.On[i] = v.Of[at], v.On[at]
		}
	}
	return result
}

// These are measured sizes, in bytes, of values to which a verdict refers: a reason with the path of its selector, and the text
// of a failure.
const (
	reasonBytes  = 150
	failureBytes = 1000
	wordBytes    = int(unsafe.Sizeof(uintptr(0)))
)

// count sets Bytes to the size of the verdicts.
func (v *Verdicts) count() {
	v.Bytes = cap(v.On) * wordBytes
	for _, is := range v.On {
		if is.counted {
			continue
		}
		is.counted = true
		v.Bytes += int(unsafe.Sizeof(*is)) + cap(is.reads)*int(unsafe.Sizeof(read{}))
		switch reason := is.Reason.(type) {
		case *candidate.Failed:
			v.Bytes += failureBytes
		case *candidate.Unmatched:
			v.Bytes += reasonBytes + len(reason.Parts)*wordBytes
		}
	}
	for _, is := range v.On {
		is.counted = false
	}
}

// isShared reports whether other clusters may share the verdict. They must not if the verdict depends on AddOnPlacementScores,
// or if it is a failure, because a failure names the cluster.
func (v *Verdict) isShared() bool {
	_, failed := v.Reason.(*candidate.Failed)
	return !failed && !v.transient && len(v.reads) == 0
}

// leadsToSame reports whether both verdicts lead to the same decision and messages. It returns false if other has read a score
// that will expire.
func (v *Verdict) leadsToSame(other *Verdict) bool {
	return v.Predicate == other.Predicate && candidate.SameReason(v.Reason, other.Reason) && v.Timed == other.Timed && v.PreRelease == other.PreRelease &&
		!slices.ContainsFunc(other.reads, func(r read) bool { return !r.until.IsZero() })
}
