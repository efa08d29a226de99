// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
)

// kube-scheduler gives a group that waits for nodes and a group with a wrong constraint the same condition and event:
// Unschedulable and FailedScheduling. Only the second group needs a user to change something. So it gets a condition and an
// event of its own.

// reasonOf returns the reason of the condition for an error of the search. It returns "" if the error is no mistake in the
// constraint, for example if the search took too long or nothing is compiled yet.
func reasonOf(err error) string {
	failure, ok := errors.AsType[*cel.Error](err)
	if !ok {
		return ""
	}
	switch failure.Reason {
	case cel.ReasonTooLong, cel.ReasonInvalid, cel.ReasonType:
		return wellknown.ReasonInvalidExpression
	case cel.ReasonRuntime, cel.ReasonCostLimit, cel.ReasonMemory:
		return wellknown.ReasonEvaluationFailed
	default:
		return ""
	}
}

// misconfigured reports a mistake in the constraint by a condition of the group and by an event. A mistake that the condition
// already has is not reported again.
func (pl *NodeSets) misconfigured(group *schedulingapi.PodGroup, reason string, err error) {
	if pl.conditions.report(group, metav1.Condition{Type: wellknown.ConditionMisconfigured, Status: metav1.ConditionTrue, Reason: reason, Message: err.Error()}) {
		pl.handle.EventRecorder().Eventf(group, nil, v1.EventTypeWarning, reason, wellknown.ActionScheduling, "%s", cut(err.Error(), maxNote))
	}
}

// accepted sets the condition of a group to False if misconfigured has set it to True. Otherwise it writes nothing.
func (pl *NodeSets) accepted(group *schedulingapi.PodGroup) {
	if meta.IsStatusConditionTrue(group.Status.Conditions, wellknown.ConditionMisconfigured) {
		pl.conditions.report(group, metav1.Condition{
			Type: wellknown.ConditionMisconfigured, Status: metav1.ConditionFalse, Reason: wellknown.ReasonConstraintAccepted, Message: "The last search for nodes found no mistake in the constraint",
		})
	}
}
