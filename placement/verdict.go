// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/cel/cluster"
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
}

// verdict is what was found of a cluster.
type verdict struct {
	match
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
	version version
	// until is when it expires, zero if it doesn't or has.
	until   time.Time
	expired bool
}

// version tells the states of an object apart.
type version struct {
	uid      types.UID
	resource string
}

// rememberable reports whether two objects with this version must be equal.
func (v version) rememberable() bool { return v.resource != "" }

func versionOf(cluster *clusterv1.ManagedCluster) version {
	return version{cluster.UID, cluster.ResourceVersion}
}

func readOf(name string, object *clusterv1alpha1.AddOnPlacementScore, now time.Time) read {
	result := read{name: name}
	if object == nil {
		return result
	}
	result.version = version{object.UID, object.ResourceVersion}
	if until := object.Status.ValidUntil; until != nil {
		if result.expired = now.After(until.Time); !result.expired {
			result.until = until.Time
		}
	}
	return result
}

// recorder finds AddOnPlacementScores and notes which ones it was asked for.
type recorder struct {
	snapshot *Snapshot
	now      time.Time
	reads    []read
	// fleeting is set if one has no version.
	fleeting bool
	err      error
}

// FindScore asks the snapshot.
func (r *recorder) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	object, err := r.snapshot.score(namespace, name)
	if err != nil {
		r.err = err
		return nil, err
	}
	read := readOf(name, object, r.now)
	r.fleeting = r.fleeting || object != nil && !read.version.rememberable()
	r.reads = append(r.reads, read)
	return object, nil
}

// judge finds the verdicts on all available clusters, from memory where they hold. Those on clusters that are not
// available any more are forgotten. Where a verdict is another one than before, the last result does not stand.
// sameScores is set if AddOnPlacementScores are known to be those of before.
func (r *run) judge(known *remembered, sameScores bool) error {
	if len(r.plan.predicates) == 0 {
		known.verdicts, known.begun = verdicts{}, begun{}
		return r.interrupted()
	}
	clusters := r.result.Available.Clusters
	// After an error nothing is left of verdicts of which some are replaced.
	now := known.verdicts.alignedWith(clusters)
	known.verdicts = verdicts{}
	renewed := now.bytes == 0
	for i, c := range clusters {
		before := now.on[i]
		if before != nil {
			holds, err := r.holds(before, now.of[i], c, now.at, sameScores)
			if err != nil {
				return err
			}
			if holds {
				continue
			}
		}
		is, err := r.evaluate(c)
		if err != nil {
			return err
		}
		if before == nil || !before.saysTheSameAs(is) {
			known.last = nil
		} else if before.isShared() && is.isShared() && before.cost == is.cost {
			continue
		}
		now.on[i], renewed = is, true
	}
	now.of, now.at = clusters, r.clock
	if renewed {
		now.count()
	}
	known.verdicts, known.begun = now, begun{}
	if r.result.Overrun != nil {
		known.begun.Time = r.begunAt
	}
	r.result.Remembered = len(clusters) - r.result.Evaluated - r.skipped
	return nil
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
		switch reason := is.reason.(type) {
		case *Failed:
			v.bytes += failureBytes
		case *Unmatched:
			v.bytes += reasonBytes + len(reason.Parts)*wordBytes
		}
	}
	for _, is := range v.on {
		is.counted = false
	}
}

// holds reports whether nothing that a verdict depends on has changed: object is what it was found of, at what
// now() was.
func (r *run) holds(v *verdict, object, cluster *clusterv1.ManagedCluster, at time.Time, sameScores bool) (bool, error) {
	if v.fleeting || object != cluster && versionOf(object) != versionOf(cluster) || v.timed && !at.Equal(r.clock) {
		return false, nil
	}
	if sameScores {
		return true, nil
	}
	for _, known := range v.reads {
		object, err := r.snapshot.score(cluster.Name, known.name)
		if err != nil {
			return false, err
		}
		if readOf(known.name, object, r.now) != known {
			return false, nil
		}
	}
	return true, nil
}

// evaluate asks the predicates. It fails if the context ends or the snapshot does;
// a failed expression is a verdict, and so is that time was too short.
func (r *run) evaluate(of *clusterv1.ManagedCluster) (*verdict, error) {
	if r.hurries() {
		return r.late(of, nil), nil
	}
	r.recorder.reads, r.recorder.fleeting = nil, !versionOf(of).rememberable()
	match, late := r.plan.predicates.match(&r.alarm, of, cluster.Hub{Scores: &r.recorder, Now: r.now, Clock: r.clock})
	if err := r.interrupted(); err != nil {
		return nil, err
	}
	if r.recorder.err != nil {
		return nil, r.recorder.err
	}
	r.result.Evaluated++
	r.result.Cost += match.cost
	if late != nil {
		return r.late(of, late), nil
	}
	return r.share(verdict{match: match, reads: r.recorder.reads, fleeting: r.recorder.fleeting, preRelease: r.plan.isPreRelease(of)}), nil
}

// mostShared is how many verdicts of a run are compared. They differ in what the evaluation cost, too.
const mostShared = 64

// share returns the verdict on a cluster before if it is the same: there are few, and many clusters.
func (r *run) share(found verdict) *verdict {
	if found.isShared() {
		for i := len(r.shared) - 1; i >= 0; i-- {
			if known := r.shared[i]; known.cost == found.cost && known.saysTheSameAs(&found) {
				return known
			}
		}
	}
	kept := found
	if found.isShared() && len(r.shared) < mostShared {
		r.shared = append(r.shared, &kept)
	}
	return &kept
}

// isShared reports whether a verdict depends on nothing but the version of the cluster, and may be that of others:
// each failure names its cluster.
func (v *verdict) isShared() bool {
	_, failed := v.reason.(*Failed)
	return !failed && !v.fleeting && len(v.reads) == 0
}

// saysTheSameAs reports whether two verdicts lead to the same decision, the same words about it and the same time
// at which it may be another one.
func (v *verdict) saysTheSameAs(other *verdict) bool {
	return v.predicate == other.predicate && sameReason(v.reason, other.reason) && v.timed == other.timed && v.preRelease == other.preRelease &&
		!slices.ContainsFunc(other.reads, func(r read) bool { return !r.until.IsZero() })
}

// sameReason compares reasons of verdicts. Each failure is another one.
func sameReason(a, b Reason) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	one, is := a.(*Unmatched)
	other, isOther := b.(*Unmatched)
	return is && isOther && slices.Equal(one.Parts, other.Parts)
}
