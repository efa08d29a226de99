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

// Verdicts has the verdicts of the predicates of a Placement on some clusters.
type Verdicts struct {
	// Of are the clusters, sorted by name. Other Placements share the list, and it is not modified.
	Of []*clusterv1.ManagedCluster
	// On has the verdict on each cluster, in the order of Of. Clusters with the same verdict share it.
	On []*Verdict
	// at is the value of now() in the expressions.
	at time.Time
	// Bytes is an estimate of the memory that On takes.
	Bytes int
	// firstAttempt is the time of the first attempt at a decision for which time was too short, zero if the last
	// attempt succeeded. All attempts have the same now(). Otherwise verdicts that hold for one tick would be found
	// again at each attempt, and never be there for all clusters.
	firstAttempt time.Time
}

// longestDecision is the age at which an unfinished decision starts again, with another now().
const longestDecision = time.Minute

// FirstAttempt returns the time of the first attempt at an unfinished decision, now if there is none.
func (v Verdicts) FirstAttempt(now time.Time) time.Time {
	if since := now.Sub(v.firstAttempt); v.firstAttempt.IsZero() || since < 0 || since >= longestDecision {
		return now
	}
	return v.firstAttempt
}

// Account returns the cost of all verdicts, and whether one of them has read now(). next gets the times at which
// verdicts may change. tick is the next value of now().
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

// Verdict is the result of all predicates on one cluster.
type Verdict struct {
	predicate.Match
	// reads are the AddOnPlacementScores that the expressions read.
	reads []read
	// transient is set if an object on which the verdict depends has no version.
	transient bool
	// PreRelease is set if the version of the cluster is a pre-release, and an expression compares it with the release.
	PreRelease bool
	// counted is set while count runs, if the verdict is counted already.
	counted bool
}

// read is an AddOnPlacementScore that an expression read. The version is empty if there is no such object.
type read struct {
	name    string
	version hub.Version
	// until is the time at which the object expires. It is zero if it never does, or if expired is set.
	until   time.Time
	expired bool
}

// readOf returns the read of an AddOnPlacementScore. object is nil if there is none.
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

// alignedWith returns the verdicts in the order of a list of clusters. The verdict is nil for a cluster with a name that
// v does not have.
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

// Measured sizes of what a verdict refers to: a reason with the path of the selector, and the text of a failure.
const (
	reasonBytes  = 150
	failureBytes = 1000
	wordBytes    = int(unsafe.Sizeof(uintptr(0)))
)

// count sets Bytes.
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

// isShared reports whether other clusters may share the verdict. They may not if the verdict depends on
// AddOnPlacementScores, or if it is a failure, which names the cluster.
func (v *Verdict) isShared() bool {
	_, failed := v.Reason.(*candidate.Failed)
	return !failed && !v.transient && len(v.reads) == 0
}

// saysTheSameAs reports whether a decision with either verdict is the same, with the same messages and the same time at
// which it may change.
func (v *Verdict) saysTheSameAs(other *Verdict) bool {
	return v.Predicate == other.Predicate && candidate.SameReason(v.Reason, other.Reason) && v.Timed == other.Timed && v.PreRelease == other.PreRelease &&
		!slices.ContainsFunc(other.reads, func(r read) bool { return !r.until.IsZero() })
}
