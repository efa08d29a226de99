// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
)

// Schedule decides one Placement. Neither it nor the snapshot is modified.
//
// An error means that the decision could not be made and should be tried again:
// the context ended, or the snapshot could not be read. The result is there all
// the same, with conditions to write and without a Decision. Anything wrong with
// objects is no error but a result, also that evaluations take longer than they may:
// than the Scheduler allows, or than ctx does if a [Deadline] ends it.
func (s *Scheduler) Schedule(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) (*Result, error) {
	if s.observer == nil {
		return s.decide(ctx, placement, snapshot, now)
	}
	end := s.observer.ObserveSchedule()
	result, err := s.decide(ctx, placement, snapshot, now)
	end(result, err)
	return result, err
}

func (s *Scheduler) decide(ctx context.Context, placement *clusterv1beta1.Placement, snapshot *Snapshot, now time.Time) (*Result, error) {
	if placement == nil || snapshot == nil || now.IsZero() {
		return &Result{now: now}, errors.New("schedule: placement, snapshot and time must be given")
	}
	r := s.newRun(ctx, placement, snapshot, now)
	defer r.alarm.close()
	memory, known, err := s.memoryOf(withoutDeadline(ctx), placement)
	if err != nil {
		return r.result, fmt.Errorf("scheduling was interrupted: %w", err)
	}
	defer memory.release(known)
	if memory.slot == nil {
		// Objects of which nothing is remembered may be those of a list that is read for one decision.
		r.memberships = &memberships{}
	}
	if err = r.schedule(known); err != nil {
		r.report.stand(err)
	}
	r.result.Requeue = r.horizon.time
	return r.result, err
}

// begin takes what is known of the Placement.
func (r *run) begin(known *remembered) {
	r.plan = known.plan
	r.begunAt = known.begun.orNow(r.now)
	r.clock = cluster.Moment(r.begunAt, r.tick)
}

// available finds what there is to choose from.
func (r *run) available() (*Availability, error) {
	available, err := r.memberships.available(r.placement, r.snapshot)
	r.result.Available = available
	return available, err
}

func (r *run) schedule(known *remembered) error {
	r.begin(known)
	known.last = nil
	r.result.Reads, r.result.Prioritizers = r.plan.reads, r.plan.prioritizers
	wrong := append(misconfigurations(nil), r.plan.wrong...)
	wrong = append(wrong, wrongMetadata(r.placement)...)
	r.result.Misconfigurations = wrong
	r.report.configured(wrong)
	r.former = r.snapshot.Decisions.former(r.key)
	r.result.Standing = len(r.former.decisions)
	_, err := r.available()
	r.missingSets()
	switch {
	case r.report.nothing(err):
		r.report.notEvaluated("there is no cluster to choose from")
		r.result.Decision = r.decide(nil)
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
		return r.choose(known)
	}
}

// nothing tells whether there is nothing to choose from, and says why. Then no
// predicate matters, nor whether it is understood: the decision is empty.
func (r *report) nothing(err error) bool {
	available := r.result.Available
	switch {
	case len(available.Bound) == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoBindings, "No valid ManagedClusterSetBindings found in placement namespace")
	case len(available.Eligible) == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoIntersection,
			fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(r.placement.Spec.ClusterSets, ","))+r.lacks())
	case err == nil && len(available.Clusters) == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonSetsEmpty,
			fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(available.Eligible, ","))+r.lacks())
	default:
		return false
	}
	return true
}

// stand replaces what the conditions say of a decision that was not made.
func (r *report) stand(err error) {
	r.result.Decision, r.result.Conditions = nil, r.result.Conditions[:1]
	r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, fmt.Sprintf("%s; %s", err, r.result.standing()))
}

// choose filters, ranks and picks.
func (r *run) choose(known *remembered) error {
	end := r.observe(KindFilter, Predicate)
	err := r.judge(known, false)
	end()
	if err != nil {
		return err
	}
	candidates, failed := r.filter(known.verdicts.on)
	r.report.lacking = append(r.report.lacking, r.plan.unknown...)
	r.unread(failed)
	if r.result.Overrun != nil {
		r.report.overrun()
		return nil
	}
	if err := r.prioritize(candidates); err != nil {
		return err
	}
	ranked := r.rank(candidates)
	r.result.Candidates = ranked
	limit := len(candidates)
	if wanted := r.placement.Spec.NumberOfClusters; wanted != nil {
		limit = min(limit, int(*wanted))
	}
	r.pick(ranked, limit)
	selected := make([]*Candidate, 0, limit)
	for _, c := range candidates {
		if c.Selected {
			selected = append(selected, c)
		}
	}
	stands := len(selected) == 0 && r.lost(failed)
	r.report.evaluated(failed, stands)
	if stands {
		r.report.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled,
			"No cluster can be selected because the evaluation failed; "+r.result.standing()+r.report.summary()+r.report.lacks())
		return nil
	}
	r.unmatched()
	r.missingTopologies(candidates)
	r.report.scheduled(len(selected))
	r.result.Decision = r.decide(selected)
	known.last = r.made()
	r.result.last = known.last
	return r.interrupted()
}

// lost tells whether only failed evaluations keep clusters of the former decision
// from staying, so that with them it would be empty because of an error.
func (r *run) lost(failed []Removal) bool {
	if wanted := r.placement.Spec.NumberOfClusters; wanted != nil && *wanted == 0 {
		return false
	}
	for _, removal := range failed {
		if _, chosen := r.former.decisions[removal.Cluster]; chosen && r.tolerable(removal.Cluster) {
			return true
		}
	}
	return false
}
