// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/internal/clusterstate"
)

// Scheduling holds facts about the scheduling of a pod other than its devices.
type Scheduling struct {
	// Refused lists the reasons why no node can get the pod.
	Refused []string `json:"refused,omitempty"`
	// NotChecked lists conditions for the pod's scheduling that this package can't check.
	NotChecked []string `json:"notChecked,omitempty"`
	// Quoted holds messages of schedulers: from the pod's condition PodScheduled, and from its latest events.
	Quoted []string `json:"said,omitempty"`
}

// schedulingOf returns the facts in the pod object. If pod is nil, the result is empty.
func schedulingOf(pod *corev1.Pod) (s Scheduling) {
	if pod == nil {
		return s
	}
	if pod.DeletionTimestamp != nil {
		s.Refused = append(s.Refused, "the pod is being deleted")
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		s.Refused = append(s.Refused, fmt.Sprintf("the pod has ended: status.phase is %s", pod.Status.Phase))
	}
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 {
		names := make([]string, len(gates))
		for i, gate := range gates {
			names[i] = gate.Name
		}
		s.Refused = append(s.Refused, fmt.Sprintf("spec.schedulingGates has %s: the scheduler waits until they are removed", strings.Join(names, ", ")))
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			s.Quoted = append(s.Quoted, fmt.Sprintf("PodScheduled is False (%s): %s", condition.Reason, condition.Message))
		}
	}
	return s
}

// maxEvents is the maximum number of quoted events.
const maxEvents = 3

// AddEvents quotes the latest warning events about the pod, except for messages that the pod's condition already contains.
func (s *Scheduling) AddEvents(events []corev1.Event) {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return lastOf(b).Compare(lastOf(a)) })
	quoted := 0
	for _, event := range events {
		isNew := !slices.ContainsFunc(s.Quoted, func(said string) bool { return strings.HasSuffix(said, event.Message) })
		if event.Type == corev1.EventTypeWarning && isNew && quoted < maxEvents {
			s.Quoted = append(s.Quoted, fmt.Sprintf("event %s: %s", event.Reason, event.Message))
			quoted++
		}
	}
}

// lastOf returns the time of the last occurrence of an event.
func lastOf(event corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.LastTimestamp.Time
	}
}

// AddServed adds a reason to s if the pod's scheduler does not support constraints that the pod needs. schedulers are the
// profiles on the Leases of the namespace. err is the error of reading the Leases, or nil.
func (s *Scheduling) AddServed(state *clusterstate.State, subject *clusterstate.Subject, schedulers served.Schedulers, namespace string, err error) {
	if subject.Pod == nil || err == nil && subject.Pod.Spec.NodeName != "" {
		return
	}
	name := subject.Pod.Spec.SchedulerName
	scheduler, profile := schedulers.Profile(name)
	if !needsConstraints(state, subject) {
		if err == nil && profile == nil && name != corev1.DefaultSchedulerName {
			s.NotChecked = append(s.NotChecked, fmt.Sprintf("whether the scheduler %q of spec.schedulerName exists: no celset-scheduler has a profile with this name%s", name, nearProfile(name, schedulers)))
		}
		return
	}
	switch {
	case err != nil:
		s.NotChecked = append(s.NotChecked, fmt.Sprintf("whether the scheduler %q supports constraints: %v", name, err))
	case len(schedulers) == 0:
		s.Refused = append(s.Refused, fmt.Sprintf("no Lease in namespace %s has the profiles of a celset-scheduler, so constraints are not supported: start celset-scheduler, or set --scheduler-namespace to the namespace of its Lease", namespace))
	case profile == nil:
		s.Refused = append(s.Refused, fmt.Sprintf("spec.schedulerName: no celset-scheduler has a profile %q, so constraints are not supported: use %s%s",
			name, orNone(schedulers.Names()), nearProfile(name, schedulers)))
	case !scheduler.Constraints:
		s.Refused = append(s.Refused, fmt.Sprintf("the feature gate DRACELDeviceConstraint is off in the scheduler with Lease %s: enable it", scheduler.Lease))
	case !profile.Serves():
		s.Refused = append(s.Refused, fmt.Sprintf("spec.schedulerName: profile %q has allocator: Upstream, which does not support constraints: use %s", name, orNone(schedulers.Names())))
	case time.Since(scheduler.Until) > 0:
		s.NotChecked = append(s.NotChecked, fmt.Sprintf("whether a scheduler is running: Lease %s expired %s ago", scheduler.Lease, duration.HumanDuration(time.Since(scheduler.Until))))
	}
}

func nearProfile(name string, schedulers served.Schedulers) string {
	return nearest.DidYouMean("", name, slices.Values(schedulers.Names()))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "a profile that supports them (none exists)"
	}
	return strings.Join(names, " or ")
}

// needsConstraints reports whether a CEL constraint applies to a claim of the subject, or to the group of its pod.
func needsConstraints(state *clusterstate.State, subject *clusterstate.Subject) bool {
	if _, refers := v1alpha1.NodeSetReference(state.GroupOf(subject.Pod)); refers {
		return true
	}
	hasDefaults := func(name string) bool {
		class, err := state.Classes().Get(name)
		return err == nil && v1alpha1.HasDefaults(class)
	}
	for _, claim := range subject.Claims {
		if v1alpha1.HasConstraints(claim, hasDefaults) {
			return true
		}
	}
	return false
}
