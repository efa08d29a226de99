// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
)

// Status returns the status of the object. It keeps conditions of other types, and the transition times of conditions whose status
// does not change. If nothing changes, the result equals the current status of the object.
func (o *ObjectReport) Status(now metav1.Time) v1alpha1.DeviceAttributesStatus {
	status := v1alpha1.DeviceAttributesStatus{
		ObservedGeneration: o.Object.Generation,
		Devices:            number(o.Devices),
		Attributes:         number(o.Attributes),
		Conditions:         slices.Clone(o.Object.Status.Conditions),
	}
	if o.UnmatchedRows.Count > 0 {
		status.UnmatchedRows = &v1alpha1.UnmatchedRows{Count: number(o.UnmatchedRows.Count), Keys: o.UnmatchedRows.First}
	}
	if o.FailedExpressions.Count > 0 {
		status.FailedExpressions = &v1alpha1.FailedExpressions{Count: number(o.FailedExpressions.Count)}
		for _, f := range o.FailedExpressions.First {
			status.FailedExpressions.First = append(status.FailedExpressions.First, v1alpha1.FailedExpression(f))
		}
	}
	if o.Conflicts.Count > 0 {
		status.Conflicts = &v1alpha1.AttributeConflicts{Count: number(o.Conflicts.Count)}
		for _, c := range o.Conflicts.First {
			status.Conflicts.First = append(status.Conflicts.First, v1alpha1.AttributeConflict{Attribute: string(c.Attribute), Device: c.Device, Object: c.Object})
		}
	}
	for _, condition := range []metav1.Condition{o.accepted(), o.complete(), o.conflicted()} {
		condition.ObservedGeneration, condition.LastTransitionTime = o.Object.Generation, now
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func (o *ObjectReport) accepted() metav1.Condition {
	if o.Rejection != nil {
		return condition(wellknown.ConditionAttributesAccepted, metav1.ConditionFalse, o.Rejection.Reason, o.Rejection.Message)
	}
	return condition(wellknown.ConditionAttributesAccepted, metav1.ConditionTrue, wellknown.ReasonAttributesAccepted, "The object is in effect.")
}

func (o *ObjectReport) complete() metav1.Condition {
	reason, message := wellknown.ReasonAttributesComplete, fmt.Sprintf("%d devices have %d attributes of the object.", o.Devices, o.Attributes)
	switch {
	case o.Rejection != nil:
		reason, message = wellknown.ReasonNotInEffect, "The object is not accepted."
	case o.OverLimit.Count > 0:
		reason = wellknown.ReasonLimitExceeded
		message = fmt.Sprintf("%d devices would exceed Kubernetes' limits for attributes and got none, the first is %s: define fewer attributes, or shorter lists.",
			o.OverLimit.Count, o.OverLimit.First[0])
	case o.FailedExpressions.Count > 0:
		first := o.FailedExpressions.First[0]
		reason = wellknown.ReasonEvaluationFailed
		message = fmt.Sprintf("%d evaluations failed, the first is attribute %s of %s: %s", o.FailedExpressions.Count, first.Attribute, first.Device, first.Message)
	case o.UnmatchedRows.Count > 0:
		reason = wellknown.ReasonRowsUnmatched
		message = fmt.Sprintf("%d rows match no device, the first has the key %q: compare the keys with %s of the devices.",
			o.UnmatchedRows.Count, o.UnmatchedRows.First[0], o.Object.Spec.Table.Key)
	default:
		return condition(wellknown.ConditionAttributesComplete, metav1.ConditionTrue, reason, message)
	}
	return condition(wellknown.ConditionAttributesComplete, metav1.ConditionFalse, reason, message)
}

func (o *ObjectReport) conflicted() metav1.Condition {
	if o.Conflicts.Count == 0 {
		return condition(wellknown.ConditionAttributesConflicted, metav1.ConditionFalse, wellknown.ReasonNoConflict, "No other object defines an attribute differently.")
	}
	first := o.Conflicts.First[0]
	return condition(wellknown.ConditionAttributesConflicted, metav1.ConditionTrue, wellknown.ReasonDifferentValues, fmt.Sprintf(
		"%d attributes have different values, the first is %s of %s, also in object %s: remove one of the definitions.",
		o.Conflicts.Count, first.Attribute, first.Device, first.Object))
}

func condition(of string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: of, Status: status, Reason: reason, Message: message}
}

func number(of int) int32 { return int32(min(of, math.MaxInt32)) }
