// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/predicate"
)

// Judge evaluates the predicates of a Placement on clusters until a time limit is reached.
type Judge struct {
	// The caller sets the following fields. Now is the time of the decision. Clock is the value of now() in expressions.
	Predicates predicate.Set
	Snapshot   *hub.Snapshot
	Now, Clock time.Time
	Timer      *deadline.Timer

	// The following fields are results. Evaluated is the number of clusters that were evaluated. Remembered is the number of
	// clusters with a reused verdict. Cost is the total cost of the evaluations in CEL cost units.
	Evaluated, Remembered int
	Cost                  uint64
	// Overrun is set if the evaluations exceeded a time limit.
	Overrun *Overrun

	recorder recorder
	// shared holds new verdicts that the following clusters may share.
	shared []*Verdict
	// skipped is the number of clusters whose evaluation did not start because the time was over.
	skipped int
}

// Find returns the verdicts on clusters. It reuses known verdicts that are still valid, and evaluates the other clusters. It
// overwrites known. same reports whether each verdict leads to the same decision as the known verdict. firstAttempt is the time
// of the first attempt at this decision. sameScores means that no AddOnPlacementScore has changed. If Find fails, it returns no
// verdicts.
func (j *Judge) Find(known Verdicts, clusters []*clusterv1.ManagedCluster, firstAttempt time.Time, sameScores bool) (now Verdicts, same bool, err error) {
	if len(j.Predicates.Selectors) == 0 {
		return Verdicts{}, true, j.Timer.Interrupted()
	}
	j.recorder = recorder{snapshot: j.Snapshot, now: j.Now}
	now, same = known.alignedWith(clusters), true
	renewed := now.Bytes == 0
	for i, c := range clusters {
		before := now.On[i]
		if before != nil {
			holds, err := j.holds(before, now.Of[i], c, now.at, sameScores)
			if err != nil {
				return Verdicts{firstAttempt: known.firstAttempt}, false, err
			}
			if holds {
				continue
			}
		}
		is, err := j.evaluate(c)
		if err != nil {
			return Verdicts{firstAttempt: known.firstAttempt}, false, err
		}
		if before == nil || !before.leadsToSame(is) {
			same = false
		} else if before.isShared() && is.isShared() && before.Cost == is.Cost {
			continue
		}
		now.On[i], renewed = is, true
	}
	now.Of, now.at, now.firstAttempt = clusters, j.Clock, time.Time{}
	if renewed {
		now.count()
	}
	if j.Overrun != nil {
		now.firstAttempt = firstAttempt
	}
	j.Remembered = len(clusters) - j.Evaluated - j.skipped
	return now, same, nil
}

// holds reports whether v is still valid for cluster. object is the version of the cluster on which v was computed. at was the
// value of now() then.
func (j *Judge) holds(v *Verdict, object, cluster *clusterv1.ManagedCluster, at time.Time, sameScores bool) (bool, error) {
	if v.transient || object != cluster && hub.VersionOf(object) != hub.VersionOf(cluster) || v.Timed && !at.Equal(j.Clock) {
		return false, nil
	}
	if sameScores {
		return true, nil
	}
	for _, known := range v.reads {
		object, err := j.Snapshot.Score(cluster.Name, known.name)
		if err != nil {
			return false, err
		}
		if readOf(known.name, object, j.Now) != known {
			return false, nil
		}
	}
	return true, nil
}

// evaluate returns a new verdict on a cluster. It fails only if the context ended or the snapshot could not be read. If an
// expression fails or times out, the verdict has the failure as its reason.
func (j *Judge) evaluate(of *clusterv1.ManagedCluster) (*Verdict, error) {
	if j.hurries() {
		return j.late(of, nil), nil
	}
	j.recorder.reads, j.recorder.transient = nil, !hub.VersionOf(of).Rememberable()
	match, late := j.Predicates.Match(j.Timer, of, cluster.Hub{Scores: &j.recorder, Now: j.Now, Clock: j.Clock})
	if err := j.Timer.Interrupted(); err != nil {
		return nil, err
	}
	if j.recorder.err != nil {
		return nil, j.recorder.err
	}
	j.Evaluated++
	j.Cost += match.Cost
	if late != nil {
		return j.late(of, late), nil
	}
	return j.share(Verdict{Match: match, reads: j.recorder.reads, transient: j.recorder.transient, PreRelease: j.Predicates.IsPreRelease(of)}), nil
}

// mostShared is the maximum number of verdicts that are kept for sharing. Verdicts that differ only in cost count separately.
const mostShared = 64

// share returns an earlier verdict that equals found, or else a copy of found. A hub has many clusters, but few different
// verdicts.
func (j *Judge) share(found Verdict) *Verdict {
	if found.isShared() {
		for i := len(j.shared) - 1; i >= 0; i-- {
			if known := j.shared[i]; known.Cost == found.Cost && known.leadsToSame(&found) {
				return known
			}
		}
	}
	kept := found
	if found.isShared() && len(j.shared) < mostShared {
		j.shared = append(j.shared, &kept)
	}
	return &kept
}

// maxLate is the number of evaluations that may time out before the judge stops. A condition names only this many clusters.
const maxLate = finding.MostNamed

// hurries reports whether the judge must stop evaluating clusters: the time for all evaluations is over, or maxLate single
// evaluations have timed out.
func (j *Judge) hurries() bool {
	if o := j.Overrun; o != nil && (!o.Evaluations || len(o.Late) >= maxLate) {
		return true
	}
	if limit := j.Timer.Exceeded(); limit != nil {
		j.overran(limit)
		return true
	}
	return false
}

// overran returns the Overrun. It creates the Overrun when the first limit is exceeded.
func (j *Judge) overran(limit *deadline.Deadline) *Overrun {
	if j.Overrun == nil {
		j.Overrun = &Overrun{Limit: limit}
	}
	return j.Overrun
}

// late returns the verdict on a cluster that was not evaluated in time. The next attempt evaluates the cluster again. failure
// is nil if the evaluation did not start.
func (j *Judge) late(of *clusterv1.ManagedCluster, failure error) *Verdict {
	reason := &candidate.Late{}
	if failure == nil {
		j.skipped++
	} else {
		j.tooLong(of.Name, failure, reason)
	}
	j.Overrun.Pending++
	return &Verdict{transient: true, Match: predicate.Match{Predicate: -1, Reason: reason}}
}

// tooLong records in the Overrun and in reason which limit ended an evaluation, and which expression was running.
func (j *Judge) tooLong(name string, failure error, reason *candidate.Late) {
	limit := deadline.In(failure)
	overrun := j.overran(limit)
	overrun.Late = append(overrun.Late, candidate.Removal{Cluster: name, Reason: reason})
	// If the Deadline is not the Deadline of all evaluations, it is the limit of this evaluation alone, even if both have passed.
	reason.Limit, reason.Alone = limit.Limit, limit != j.Timer.Exceeded()
	if reason.Alone {
		overrun.Limit, overrun.Evaluations = limit, true
	}
	if at := (*cluster.Error)(nil); errors.As(failure, &at) {
		reason.Expression = at.Path
	}
}

// recorder looks up AddOnPlacementScores for expressions, and records which scores an expression read.
type recorder struct {
	snapshot *hub.Snapshot
	now      time.Time
	reads    []read
	// transient is set if the cluster, or an object that an expression read, has no version.
	transient bool
	err       error
}

// FindScore returns an AddOnPlacementScore of the snapshot and records the read. It returns nil if the object does not exist.
func (r *recorder) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	object, err := r.snapshot.Score(namespace, name)
	if err != nil {
		r.err = err
		return nil, err
	}
	read := readOf(name, object, r.now)
	r.transient = r.transient || object != nil && !read.version.Rememberable()
	r.reads = append(r.reads, read)
	return object, nil
}
