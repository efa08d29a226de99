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
// Schedule returns an error if the context ended or the snapshot could not be read. The caller should then try again. A result
// with an error has conditions to write, but no Decision. Mistakes in objects are reported in the result, not as an error. An
// [Overrun] is also reported in the result: evaluations exceeded the limit of the Scheduler, or the [Deadline] of ctx.
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
		return &Result{now: now}, errors.New("schedule: the placement, the snapshot and the time must be set")
	}
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.timer.Close()
	entry, known, err := s.memory.Open(deadline.Without(ctx), placement)
	if err != nil {
		return r.result, fmt.Errorf("scheduling was interrupted: %w", err)
	}
	defer entry.Release(known)
	if !entry.Remembers() {
		// The snapshot's list of clusters may have been made for this decision only. It must not replace the shared memberships.
		r.memberships = &hub.Memberships{}
	}
	known.Last = nil
	if err = r.schedule(known); err != nil {
		r.report.keepFormer(err)
	}
	r.addFindings()
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
	// all is the version of the hub's PlacementDecisions. own is the version of this Placement's PlacementDecisions.
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

// addFindings copies findings of the steps into the result.
func (r *run) addFindings() {
	r.result.Requeue, r.result.Warnings, r.result.OutOfRange = r.found.Next.Time, r.found.Warnings, r.found.OutOfRange
	r.result.NamesSets = r.found.Sets
	r.result.Reads.Computed = r.result.Reads.Computed || r.found.Scores
}

// inputs returns those inputs of the result that are compared before clusters, scores and time.
func (r *run) inputs(compiled *plan.Plan) memory.Inputs {
	return memory.InputsOf(compiled, r.placement, r.snapshot.Decisions, r.all, r.own)
}

// available finds the clusters that the Placement may select.
func (r *run) available() (*hub.Availability, error) {
	available, err := r.memberships.Available(r.placement, r.snapshot)
	r.result.Available = available
	return available, err
}

// schedule makes the decision. If the former decision stays in effect instead, the conditions say why.
func (r *run) schedule(known *memory.Known) error {
	compiled, spec := known.Plan, &r.placement.Spec
	r.result.Reads, r.result.Prioritizers = compiled.Reads, compiled.Prioritizers
	wrong := append(finding.Misconfigurations(nil), compiled.Wrong...)
	wrong = append(wrong, plan.WrongMetadata(r.placement)...)
	r.result.Misconfigurations = wrong
	r.report.configured(wrong)
	former := r.snapshot.Decisions.Former(r.placement.Namespace, r.placement.Name)
	r.result.FormerClusters = len(former.Decisions)
	available, err := r.available()
	misspelling.Sets(spec, available.Bound, &r.found)
	switch {
	case r.report.nothing(err):
		r.report.notEvaluated("no cluster is available")
		r.result.Decision = r.decide(compiled, former, nil)
		return nil
	case err != nil:
		r.report.notEvaluated("the available clusters are unknown")
		r.report.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, fmt.Sprintf("%s; %s", err, r.result.formerClause()))
		return nil
	case len(wrong) > 0:
		r.report.notEvaluated("the Placement is misconfigured")
		r.report.misconfigured()
		return nil
	default:
		return r.choose(known, former)
	}
}

// judge computes the verdicts on all available clusters, and reuses known verdicts that are still valid. clock is the value of
// now() in expressions. same reports whether each verdict equals the known verdict on the cluster.
func (r *run) judge(known *memory.Known, sameScores bool) (clock time.Time, same bool, err error) {
	firstAttempt := known.Verdicts.FirstAttempt(r.now)
	clock = cluster.Moment(firstAttempt, r.scheduler.tick)
	j := &verdict.Judge{Predicates: known.Plan.Predicates, Snapshot: r.snapshot, Now: r.now, Clock: clock, Timer: r.timer}
	known.Verdicts, same, err = j.Find(known.Verdicts, r.result.Available.Clusters, firstAttempt, sameScores)
	r.result.Evaluated, r.result.Remembered, r.result.Cost, r.result.Overrun = j.Evaluated, j.Remembered, j.Cost, j.Overrun
	return clock, same, err
}

// choose decides a Placement that has available clusters:
//
//  1. Evaluate the predicates for each available cluster.
//  2. Filter the clusters. The remaining clusters are candidates.
//  3. If time ran out before all evaluations, keep the former decision.
//  4. Score, rank and pick the candidates.
//  5. If no cluster is selected and the evaluation of a formerly selected cluster failed, keep the former decision.
//  6. Divide the picked candidates into decisions.
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
			"No cluster can be selected because the evaluation failed; "+r.result.formerClause()+r.report.summary()+r.found.Lacks())
		return nil
	}
	misspelling.Unmatched(&r.placement.Spec, r.result.Filters[0].Removed, available.Clusters, &r.found)
	misspelling.Topologies(compiled.Spread, candidates, &r.found)
	r.report.scheduled(len(selected))
	r.result.Decision = r.decide(compiled, former, selected)
	known.Last = r.inputsOfResult(compiled, ranking)
	r.result.last = known.Last
	return r.timer.Interrupted()
}

// filter returns the clusters that pass both filters, sorted by name.
func (r *run) filter(verdicts []*verdict.Verdict, taints *filter.Tolerations) []*candidate.Candidate {
	candidates, filtered := filter.Predicates{Verdicts: verdicts}.Filter(r.result.Available, &r.found)
	r.result.Filters = append(r.result.Filters, filtered)
	defer r.scheduler.observe(KindFilter, finding.TaintToleration)()
	candidates, filtered = taints.Filter(candidates, &r.found.Next)
	r.result.Filters = append(r.result.Filters, filtered)
	return candidates
}

// pick selects at most the wanted number of candidates. It returns nil if spread constraints can't change the selection.
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

// decide divides the selected candidates into a decision. selected must be sorted by name.
func (r *run) decide(compiled *plan.Plan, former *hub.Former, selected []*candidate.Candidate) *decision.Decision {
	of := &decision.Inputs{Placement: r.placement, Former: former, Groups: compiled.Groups, ScoreRateLimit: compiled.ScoreRateLimit, Now: r.now}
	return of.Decide(r.timer.Parent, selected, &r.found.Next)
}

// inputsOfResult returns the inputs of the result for [Scheduler.Unchanged]. It returns nil if they can't be compared later.
func (r *run) inputsOfResult(compiled *plan.Plan, ranking *spread.Ranking) *memory.Last {
	last := memory.NewLast(r.inputs(compiled), r.result.Available, r.now)
	if last != nil {
		last.Until, last.Scores, last.Ranking = r.found.Next.Time, r.snapshot.Scores, ranking
		last.Named, last.NamesSets = r.found.Keys, r.found.Sets
	}
	return last
}

// lost reports whether the evaluation failed on a cluster of the former decision that might otherwise be selected. In that case
// an empty decision would be the effect of an error.
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
