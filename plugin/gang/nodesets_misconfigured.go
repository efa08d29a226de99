// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
)

// kube-scheduler gives a group that waits for nodes and a group with a wrong constraint the same condition and event:
// Unschedulable and FailedScheduling. Only the second group needs a user to change something. So it gets a condition and an
// event of its own.

const (
	// conditionTimeout is the timeout of a request that writes a condition.
	conditionTimeout = 10 * time.Second
	// maxConditionWrites is the maximum number of conditions that are written at the same time.
	maxConditionWrites = 16
	// maxConditionMessage and maxNote are the API server's limits, in bytes, for the texts of conditions and events.
	maxConditionMessage = 32 << 10
	maxNote             = 1 << 10
)

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
func (pl *NodeSets) misconfigured(ctx context.Context, group *schedulingapi.PodGroup, reason string, err error) {
	if pl.write(ctx, group, metav1.ConditionTrue, reason, err.Error()) {
		pl.handle.EventRecorder().Eventf(group, nil, v1.EventTypeWarning, reason, wellknown.ActionScheduling, "%s", cut(err.Error(), maxNote))
	}
}

// accepted sets the condition of a group to False if misconfigured has set it to True. Otherwise it writes nothing.
func (pl *NodeSets) accepted(ctx context.Context, group *schedulingapi.PodGroup) {
	if meta.IsStatusConditionTrue(group.Status.Conditions, wellknown.ConditionMisconfigured) {
		pl.write(ctx, group, metav1.ConditionFalse, wellknown.ReasonConstraintAccepted, "The last search for nodes found no mistake in the constraint")
	}
}

// write starts to write the condition of a group in the background. It returns false, and writes nothing, if the group already
// has the condition, or if too many writes are in progress. After a failed request, the next cycle of the group writes the
// condition.
func (pl *NodeSets) write(ctx context.Context, group *schedulingapi.PodGroup, status metav1.ConditionStatus, reason, message string) bool {
	changed := group.Status.DeepCopy()
	if !meta.SetStatusCondition(&changed.Conditions, metav1.Condition{
		Type: wellknown.ConditionMisconfigured, Status: status, Reason: reason, Message: cut(message, maxConditionMessage), ObservedGeneration: group.Generation,
	}) {
		return false
	}
	select {
	case pl.writes <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-pl.writes }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conditionTimeout)
		defer cancel()
		err := util.PatchPodGroupStatus(ctx, pl.handle.ClientSet(), group.Name, group.Namespace, &group.Status, changed)
		if err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "The condition of a PodGroup could not be written", "podGroup", klog.KObj(group), "condition", wellknown.ConditionMisconfigured)
		}
	}()
	return true
}

// cut shortens a text to at most most bytes.
func cut(text string, most int) string {
	const ellipsis = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
