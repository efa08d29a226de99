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

// Judge asks the predicates of a Placement about clusters, as long as there is time.
type Judge struct {
	// The caller sets the following fields. Now is the time of the decision, Clock the value of now() in expressions.
	Predicates predicate.Set
	Snapshot   *hub.Snapshot
	Now, Clock time.Time
	Timer      *deadline.Timer

	// The following fields are results. Evaluated counts the clusters about which the predicates were asked, Remembered
	// those on which the verdict was known. Cost adds up the cost of the evaluations, in CEL cost units.
	Evaluated, Remembered int
	Cost                  uint64
	// Overrun is nil as long as no limit is exceeded.
	Overrun *Overrun

	recorder recorder
	// shared has verdicts that later clusters may share.
	shared []*Verdict
	// skipped counts the clusters that were not evaluated for lack of time.
	skipped int
}

// Find returns the verdicts on clusters, from those that are known where they hold. Verdicts on other clusters
// are forgotten. same reports whether each verdict says what the known one on its cluster says.
// begun is the time of the first attempt at the decision, sameScores is set if AddOnPlacementScores are known to be
// those of before. After an error nothing is left of verdicts of which some are replaced.
func (j *Judge) Find(known Verdicts, clusters []*clusterv1.ManagedCluster, begun time.Time, sameScores bool) (now Verdicts, same bool, err error) {
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
				return Verdicts{begun: known.begun}, false, err
			}
			if holds {
				continue
			}
		}
		is, err := j.evaluate(c)
		if err != nil {
			return Verdicts{begun: known.begun}, false, err
		}
		if before == nil || !before.saysTheSameAs(is) {
			same = false
		} else if before.isShared() && is.isShared() && before.Cost == is.Cost {
			continue
		}
		now.On[i], renewed = is, true
	}
	now.Of, now.at, now.begun = clusters, j.Clock, time.Time{}
	if renewed {
		now.count()
	}
	if j.Overrun != nil {
		now.begun = begun
	}
	j.Remembered = len(clusters) - j.Evaluated - j.skipped
	return now, same, nil
}

// holds reports whether nothing that a verdict depends on has changed: object is what it was found of, at what
// now() was.
func (j *Judge) holds(v *Verdict, object, cluster *clusterv1.ManagedCluster, at time.Time, sameScores bool) (bool, error) {
	if v.fleeting || object != cluster && hub.VersionOf(object) != hub.VersionOf(cluster) || v.Timed && !at.Equal(j.Clock) {
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

// evaluate asks the predicates. It fails if the context ends or the snapshot does;
// a failed expression is a verdict, and so is that time was too short.
func (j *Judge) evaluate(of *clusterv1.ManagedCluster) (*Verdict, error) {
	if j.hurries() {
		return j.late(of, nil), nil
	}
	j.recorder.reads, j.recorder.fleeting = nil, !hub.VersionOf(of).Rememberable()
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
	return j.share(Verdict{Match: match, reads: j.recorder.reads, fleeting: j.recorder.fleeting, PreRelease: j.Predicates.IsPreRelease(of)}), nil
}

// mostShared is how many verdicts of a run are compared. They differ in what the evaluation cost, too.
const mostShared = 64

// share returns the verdict on a cluster before if it is the same: there are few, and many clusters.
func (j *Judge) share(found Verdict) *Verdict {
	if found.isShared() {
		for i := len(j.shared) - 1; i >= 0; i-- {
			if known := j.shared[i]; known.Cost == found.Cost && known.saysTheSameAs(&found) {
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

// maxLate is the number of evaluations that may take too long before no more are begun. The
// condition names as many.
const maxLate = finding.MostNamed

// hurries reports whether no evaluation is to be begun any more: there is no time left, or
// it is known already that it does not suffice.
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

// overran notes that a limit is exceeded. That of single evaluations says more than that
// of all.
func (j *Judge) overran(limit *deadline.Deadline) *Overrun {
	if j.Overrun == nil {
		j.Overrun = &Overrun{Limit: limit}
	}
	return j.Overrun
}

// late is the verdict on a cluster that was not evaluated in time: it is evaluated next time. failure is nil if
// nothing was begun.
func (j *Judge) late(of *clusterv1.ManagedCluster, failure error) *Verdict {
	reason := &candidate.Late{}
	if failure == nil {
		j.skipped++
	} else {
		j.tooLong(of.Name, failure, reason)
	}
	j.Overrun.Pending++
	return &Verdict{fleeting: true, Match: predicate.Match{Predicate: -1, Reason: reason}}
}

// tooLong notes that an evaluation was ended, and by what.
func (j *Judge) tooLong(name string, failure error, reason *candidate.Late) {
	limit := deadline.In(failure)
	overrun := j.overran(limit)
	overrun.Late = append(overrun.Late, candidate.Removal{Cluster: name, Reason: reason})
	// Another Deadline than that of the run is that of the evaluation, though the run may
	// have none left either by now.
	reason.Limit, reason.Alone = limit.Limit, limit != j.Timer.Exceeded()
	if reason.Alone {
		overrun.Limit, overrun.Evaluations = limit, true
	}
	if at := (*cluster.Error)(nil); errors.As(failure, &at) {
		reason.Expression = at.Path
	}
}

// recorder finds AddOnPlacementScores and notes which ones it was asked for.
type recorder struct {
	snapshot *hub.Snapshot
	now      time.Time
	reads    []read
	// fleeting is set if one has no version.
	fleeting bool
	err      error
}

// FindScore asks the snapshot.
func (r *recorder) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	object, err := r.snapshot.Score(namespace, name)
	if err != nil {
		r.err = err
		return nil, err
	}
	read := readOf(name, object, r.now)
	r.fleeting = r.fleeting || object != nil && !read.version.Rememberable()
	r.reads = append(r.reads, read)
	return object, nil
}
