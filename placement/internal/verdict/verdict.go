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

// What the predicates of a Placement say of a cluster depends on the spec of the Placement, the cluster, the
// AddOnPlacementScores that its expressions looked for, whether these are expired, and the tick of the clock if
// they read now(). A verdict is right as long as all of that is the same. One on an object without version is
// found anew each time, and so is one that was not found in time.

// Verdicts are what the predicates of a Placement say of some clusters.
type Verdicts struct {
	// Of are the clusters, sorted by name. The list is that of other Placements, too, and is not modified.
	Of []*clusterv1.ManagedCluster
	// On has one for each of them. Clusters of which the same was found share it.
	On []*Verdict
	// at is what now() was.
	at time.Time
	// Bytes is about what on takes.
	Bytes int
	// begun is when the first of several attempts at a decision was made, zero if the last one has
	// succeeded. All of them have the same now(): if it went on between them, answers that hold for a
	// tick only would have to be found again and again, and never be there for all clusters.
	begun time.Time
}

// longestDecision is the age of an unfinished decision at which the time goes on all the same.
const longestDecision = time.Minute

// BegunAt returns the time of the attempt with which a decision at a time goes on.
func (v Verdicts) BegunAt(now time.Time) time.Time {
	if since := now.Sub(v.begun); v.begun.IsZero() || since < 0 || since >= longestDecision {
		return now
	}
	return v.begun
}

// Account adds up what the verdicts cost, and whether one has read now(). next gets the times at which
// they may be other ones; tick is the next value of now().
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

// Verdict is what was found of a cluster.
type Verdict struct {
	predicate.Match
	reads []read
	// fleeting is set if something that it depends on has no version.
	fleeting bool
	// PreRelease is set if an expression compares with the release of the numbers of the cluster's version.
	PreRelease bool
	// counted is set while it is known to be part of a count.
	counted bool
}

// read is an AddOnPlacementScore that was looked for. Its version is empty if there
// was none.
type read struct {
	name    string
	version hub.Version
	// until is when it expires, zero if it doesn't or has.
	until   time.Time
	expired bool
}

// readOf returns what was read of an AddOnPlacementScore, nil if there is none.
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

// alignedWith returns the verdicts with one for each of some clusters, nil where there is none on a cluster with
// that name.
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

// What a verdict takes besides itself, measured: a reason with the path of the selector, and
// the text of a failure.
const (
	reasonBytes  = 150
	failureBytes = 1000
	wordBytes    = int(unsafe.Sizeof(uintptr(0)))
)

// count estimates anew what the verdicts take.
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

// isShared reports whether a verdict depends on nothing but the version of the cluster, and may be that of others:
// each failure names its cluster.
func (v *Verdict) isShared() bool {
	_, failed := v.Reason.(*candidate.Failed)
	return !failed && !v.fleeting && len(v.reads) == 0
}

// saysTheSameAs reports whether two verdicts lead to the same decision, the same words about it and the same time
// at which it may be another one.
func (v *Verdict) saysTheSameAs(other *Verdict) bool {
	return v.Predicate == other.Predicate && candidate.SameReason(v.Reason, other.Reason) && v.Timed == other.Timed && v.PreRelease == other.PreRelease &&
		!slices.ContainsFunc(other.reads, func(r read) bool { return !r.until.IsZero() })
}
