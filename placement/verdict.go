// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

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

// verdicts are what the predicates of a Placement say of some clusters.
type verdicts struct {
	// of are the clusters, sorted by name. The list is that of other Placements, too, and is not modified.
	of []*clusterv1.ManagedCluster
	// on has one for each of them. Clusters of which the same was found share it.
	on []*verdict
	// at is what now() was.
	at time.Time
	// bytes is about what on takes.
	bytes int
	// begun is when the first of several attempts at a decision was made, zero if the last one has
	// succeeded. All of them have the same now(): if it went on between them, answers that hold for a
	// tick only would have to be found again and again, and never be there for all clusters.
	begun time.Time
}

// longestDecision is the age of an unfinished decision at which the time goes on all the same.
const longestDecision = time.Minute

// begunAt returns the time of the attempt with which a decision at a time goes on.
func (v verdicts) begunAt(now time.Time) time.Time {
	if since := now.Sub(v.begun); v.begun.IsZero() || since < 0 || since >= longestDecision {
		return now
	}
	return v.begun
}

// account adds up what the verdicts cost, and whether one has read now(). next gets the times at which
// they may be other ones; tick is the next value of now().
func (v verdicts) account(tick time.Time, next *finding.Wakeup) (cost uint64, timed bool) {
	for _, is := range v.on {
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

// verdict is what was found of a cluster.
type verdict struct {
	predicate.Match
	reads []read
	// fleeting is set if something that it depends on has no version.
	fleeting bool
	// preRelease is set if an expression compares with the release of the numbers of the cluster's version.
	preRelease bool
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
func (v verdicts) alignedWith(clusters []*clusterv1.ManagedCluster) verdicts {
	if slices.EqualFunc(v.of, clusters, func(a, b *clusterv1.ManagedCluster) bool { return a == b || a.Name == b.Name }) {
		return v
	}
	result := verdicts{of: make([]*clusterv1.ManagedCluster, len(clusters)), on: make([]*verdict, len(clusters)), at: v.at}
	at := 0
	for i, c := range clusters {
		for at < len(v.of) && v.of[at].Name < c.Name {
			at++
		}
		if at < len(v.of) && v.of[at].Name == c.Name {
			result.of[i], result.on[i] = v.of[at], v.on[at]
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
func (v *verdicts) count() {
	v.bytes = cap(v.on) * wordBytes
	for _, is := range v.on {
		if is.counted {
			continue
		}
		is.counted = true
		v.bytes += int(unsafe.Sizeof(*is)) + cap(is.reads)*int(unsafe.Sizeof(read{}))
		switch reason := is.Reason.(type) {
		case *candidate.Failed:
			v.bytes += failureBytes
		case *candidate.Unmatched:
			v.bytes += reasonBytes + len(reason.Parts)*wordBytes
		}
	}
	for _, is := range v.on {
		is.counted = false
	}
}

// isShared reports whether a verdict depends on nothing but the version of the cluster, and may be that of others:
// each failure names its cluster.
func (v *verdict) isShared() bool {
	_, failed := v.Reason.(*candidate.Failed)
	return !failed && !v.fleeting && len(v.reads) == 0
}

// saysTheSameAs reports whether two verdicts lead to the same decision, the same words about it and the same time
// at which it may be another one.
func (v *verdict) saysTheSameAs(other *verdict) bool {
	return v.Predicate == other.Predicate && candidate.SameReason(v.Reason, other.Reason) && v.Timed == other.Timed && v.preRelease == other.preRelease &&
		!slices.ContainsFunc(other.reads, func(r read) bool { return !r.until.IsZero() })
}
