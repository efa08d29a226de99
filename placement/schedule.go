// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
	"github.com/celset/celset/placement/internal/decision"
	"github.com/celset/celset/placement/internal/filter"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
	"github.com/celset/celset/placement/internal/memory"
	"github.com/celset/celset/placement/internal/misspelling"
	"github.com/celset/celset/placement/internal/plan"
	"github.com/celset/celset/placement/internal/prioritizer"
	"github.com/celset/celset/placement/internal/spread"
	"github.com/celset/celset/placement/internal/verdict"
)

// Schedule decides one Placement. It modifies neither the Placement nor the snapshot.
//
// An error means that the decision could not be made and should be tried again:
// the context ended, or the snapshot could not be read. There is a result with an error,
// too, with conditions to write and without a Decision. If something is wrong with
// objects, that is no error but a result. So is an [Overrun]: evaluations took longer than
// the Scheduler allows, or than ctx allows if a [Deadline] ends it.
func (s *Scheduler) Schedule(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *hub.Snapshot, now time.Time) (*Result, error) {
	if s.observer == nil {
		return s.decide(ctx, placement, snapshot, now)
	}
	end := s.observer.ObserveSchedule()
	result, err := s.decide(ctx, placement, snapshot, now)
	end(result, err)
	return result, err
}

func (s *Scheduler) decide(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *hub.Snapshot, now time.Time) (*Result, error) {
	if placement == nil || snapshot == nil || now.IsZero() {
		return &Result{now: now}, errors.New("schedule: placement, snapshot and time must be given")
	}
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.timer.Close()
	entry, known, err := s.memory.Open(deadline.Without(ctx), placement)
	if err != nil {
		return r.result, fmt.Errorf("scheduling was interrupted: %w", err)
	}
	defer entry.Release(known)
	if !entry.Remembers() {
		// Objects of which nothing is remembered may be those of a list that is read for one decision.
		r.memberships = &hub.Memberships{}
	}
	known.Last = nil
	if err = r.schedule(known); err != nil {
		r.report.stand(err)
	}
	r.tell()
	return r.result, err
}

// run is the state of one call of Schedule or Unchanged.
type run struct {
	scheduler   *Scheduler
	placement   *clusterv1beta1.Placement
	snapshot    *hub.Snapshot
	memberships *hub.Memberships
	now         time.Time
	timer       *deadline.Timer
	// all and own are the versions of all PlacementDecisions and of those of the Placement.
	all, own uint64
	found    finding.Findings
	result   *Result
	report   report
}

func (s *Scheduler) newRun(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *hub.Snapshot, now time.Time) *run {
	r := &run{
		scheduler: s, placement: placement, snapshot: snapshot, memberships: &s.memberships, now: now,
		timer: deadline.NewTimer(ctx, s.timeout), result: &Result{now: now},
	}
	r.all, r.own = snapshot.Decisions.Versions(placement.Namespace, placement.Name)
	r.result.First = r.own == 0
	r.report = report{result: r.result, placement: placement, now: now, found: &r.found}
	return r
}

// tell writes the findings into the result.
func (r *run) tell() {
	r.result.Requeue, r.result.Warnings, r.result.OutOfRange = r.found.Next.Time, r.found.Warnings, r.found.OutOfRange
	r.result.NamesSets = r.found.Sets
	r.result.Reads.Computed = r.result.Reads.Computed || r.found.Scores
}

// inputs returns what the result depends on besides time, clusters and scores.
func (r *run) inputs(compiled *plan.Plan) memory.Inputs {
	return memory.InputsOf(compiled, r.placement, r.snapshot.Decisions, r.all, r.own)
}

// available finds the clusters that there are to choose from.
func (r *run) available() (*hub.Availability, error) {
	available, err := r.memberships.Available(r.placement, r.snapshot)
	r.result.Available = available
	return available, err
}

// schedule decides the Placement unless something keeps it from being decided.
func (r *run) schedule(known *memory.Known) error {
	compiled, spec := known.Plan, &r.placement.Spec
	r.result.Reads, r.result.Prioritizers = compiled.Reads, compiled.Prioritizers
	wrong := append(finding.Misconfigurations(nil), compiled.Wrong...)
	wrong = append(wrong, plan.WrongMetadata(r.placement)...)
	r.result.Misconfigurations = wrong
	r.report.configured(wrong)
	former := r.snapshot.Decisions.Former(r.placement.Namespace, r.placement.Name)
	r.result.Standing = len(former.Decisions)
	available, err := r.available()
	misspelling.Sets(spec, available.Bound, &r.found)
	switch {
	case r.report.nothing(err):
		r.report.notEvaluated("there is no cluster to choose from")
		r.result.Decision = r.decide(compiled, former, nil)
		return nil
	case err != nil:
		r.report.notEvaluated("the clusters to choose from are not known")
		r.report.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, fmt.Sprintf("%s; %s", err, r.result.standing()))
		return nil
	case len(wrong) > 0:
		r.report.notEvaluated("the Placement is misconfigured")
		r.report.misconfigured()
		return nil
	default:
		return r.choose(known, former)
	}
}

// judge finds the verdicts of the predicates on all available clusters. clock is the value of now() in expressions. same
// reports whether each verdict says what the known verdict on its cluster says.
func (r *run) judge(known *memory.Known, sameScores bool) (clock time.Time, same bool, err error) {
	firstAttempt := known.Verdicts.FirstAttempt(r.now)
	clock = cluster.Moment(firstAttempt, r.scheduler.tick)
	j := &verdict.Judge{Predicates: known.Plan.Predicates, Snapshot: r.snapshot, Now: r.now, Clock: clock, Timer: r.timer}
	known.Verdicts, same, err = j.Find(known.Verdicts, r.result.Available.Clusters, firstAttempt, sameScores)
	r.result.Evaluated, r.result.Remembered, r.result.Cost, r.result.Overrun = j.Evaluated, j.Remembered, j.Cost, j.Overrun
	return clock, same, err
}

// choose decides a Placement that has clusters to choose from:
//
//  1. The predicates are judged on each available cluster.
//  2. The filters make candidates of the clusters.
//  3. If there was not enough time for all evaluations, the former decision stands.
//  4. The prioritizers score the candidates, which are ranked and picked.
//  5. If only failed evaluations leave no cluster, the former decision stands.
//  6. Decisions are made of the picked candidates.
func (r *run) choose(known *memory.Known, former *hub.Former) error {
	end := r.scheduler.observe(KindFilter, finding.Predicate)
	clock, _, err := r.judge(known, false)
	end()
	if err != nil {
		return err
	}
	compiled, available := known.Plan, r.result.Available
	r.result.TotalCost, r.result.Timed = known.Verdicts.Account(clock.Add(r.scheduler.tick), &r.found.Next)
	taints := &filter.Tolerations{Of: r.placement.Spec.Tolerations, Former: former, Now: r.now}
	candidates := r.filter(known.Verdicts.On, taints)
	failed := filter.Failures(r.result.Filters[0].Removed)
	r.found.Missing = append(r.found.Missing, compiled.Unknown...)
	if len(failed) > 0 {
		misspelling.Scores(compiled.Predicates, r.snapshot, available.Clusters, &r.found)
	}
	if r.result.Overrun != nil {
		r.report.overrun()
		return nil
	}
	in := &prioritizer.Inputs{Snapshot: r.snapshot, Former: former, Now: r.now, Found: &r.found}
	if err := prioritizer.Prioritize(in, compiled.Prioritizers, candidates, func(name string) func() { return r.scheduler.observe(KindPrioritizer, name) }); err != nil {
		return err
	}
	r.result.Candidates = candidate.Ranked(r.placement, candidates)
	ranking := r.pick(compiled.Spread)
	selected := candidate.SelectedOf(candidates)
	stands := len(selected) == 0 && r.lost(failed, taints, former)
	r.report.evaluated(failed, stands)
	if stands {
		r.report.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled,
			"No cluster can be selected because the evaluation failed; "+r.result.standing()+r.report.summary()+r.found.Lacks())
		return nil
	}
	misspelling.Unmatched(&r.placement.Spec, r.result.Filters[0].Removed, available.Clusters, &r.found)
	misspelling.Topologies(compiled.Spread, candidates, &r.found)
	r.report.scheduled(len(selected))
	r.result.Decision = r.decide(compiled, former, selected)
	known.Last = r.made(compiled, ranking)
	r.result.last = known.Last
	return r.timer.Interrupted()
}

// filter returns the clusters that pass both filters, in order of their names.
func (r *run) filter(verdicts []*verdict.Verdict, taints *filter.Tolerations) []*candidate.Candidate {
	candidates, filtered := filter.Predicates{Verdicts: verdicts}.Filter(r.result.Available, &r.found)
	r.result.Filters = append(r.result.Filters, filtered)
	defer r.scheduler.observe(KindFilter, finding.TaintToleration)()
	candidates, filtered = taints.Filter(candidates, &r.found.Next)
	r.result.Filters = append(r.result.Filters, filtered)
	return candidates
}

// pick selects as many of the ranked candidates as the Placement wants. The ranking is nil if no spread constraint
// made a difference.
func (r *run) pick(constraints []spread.Constraint) *spread.Ranking {
	candidates, limit, wanted := r.result.Candidates, len(r.result.Candidates), 0
	if n := r.placement.Spec.NumberOfClusters; n != nil {
		wanted = int(*n)
		limit = min(limit, wanted)
	}
	if !spread.Matters(constraints, limit, len(candidates)) {
		spread.First(candidates, limit, wanted)
		return nil
	}
	defer r.scheduler.observe(KindSpread, finding.Spread)()
	return spread.Pick(constraints, candidates, limit, wanted)
}

// decide makes decisions of the selected candidates, which are sorted by name.
func (r *run) decide(compiled *plan.Plan, former *hub.Former, selected []*candidate.Candidate) *decision.Decision {
	of := &decision.Inputs{Placement: r.placement, Former: former, Groups: compiled.Groups, ScoreRateLimit: compiled.ScoreRateLimit, Now: r.now}
	return of.Decide(r.timer.Parent, selected, &r.found.Next)
}

// made returns what the result was made from, nil if that can't be compared with a later snapshot.
func (r *run) made(compiled *plan.Plan, ranking *spread.Ranking) *memory.Last {
	last := memory.NewLast(r.inputs(compiled), r.result.Available, r.now)
	if last != nil {
		last.Until, last.Scores, last.Ranking = r.found.Next.Time, r.snapshot.Scores, ranking
		last.Named, last.NamesSets = r.found.Keys, r.found.Sets
	}
	return last
}

// lost reports whether the evaluation failed on a cluster of the former decision that would be selected otherwise. Then
// an empty decision would be empty because of an error.
func (r *run) lost(failed []candidate.Removal, taints *filter.Tolerations, former *hub.Former) bool {
	if wanted := r.placement.Spec.NumberOfClusters; wanted != nil && *wanted == 0 {
		return false
	}
	for _, removal := range failed {
		if former.Chose(removal.Cluster) && taints.Allows(removal.Cluster, r.result.Available.Clusters, &r.found.Next) {
			return true
		}
	}
	return false
}
