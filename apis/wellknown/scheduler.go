// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// What celset-scheduler writes.
const (
	// AnnotationServes is on the Lease of a scheduler. It has the profiles that the scheduler serves, as JSON.
	AnnotationServes = "celset.dev/serves"

	// LeaseScheduler is the Lease of a scheduler that elects no leader and does not name a Lease.
	LeaseScheduler = "celset-scheduler"

	// FieldManagerScheduler applies the AddOnPlacementScore of the cluster on a hub.
	FieldManagerScheduler = "celset-scheduler"
)

// Conditions that celset-scheduler writes.
const (
	// ConditionDevicesHeld is True in a pod for which devices are held while others are evicted. Its message is JSON for
	// schedulers.
	ConditionDevicesHeld = "celset.dev/DevicesHeld"

	// ConditionMisconfigured is True in a PodGroup whose node set constraint can't be used. The condition
	// PodGroupInitiallyScheduled, which is kube-scheduler's, has the reason Unschedulable then, as for any group that waits.
	ConditionMisconfigured = "celset.dev/Misconfigured"
)

// Reasons of the condition [ConditionDevicesHeld].
const (
	// ReasonPreemptionStarted is the reason while the condition is True.
	ReasonPreemptionStarted = "PreemptionStarted"
	ReasonBound             = "Bound"
	ReasonBoundElsewhere    = "BoundElsewhere"
	ReasonPodDeleted        = "PodDeleted"
	ReasonClaimDeleted      = "ClaimDeleted"
	ReasonTimedOut          = "TimedOut"
	// ReasonOutranked says that another pod has taken a device of the hold, or has a hold that goes first.
	ReasonOutranked   = "Outranked"
	ReasonDevicesLost = "DevicesLost"
	ReasonNotRecorded = "NotRecorded"
)

// Reasons of the condition [ConditionMisconfigured], and those of them that it is True for are reasons of events as well.
// [ReasonEvaluationFailed] is one of them.
const (
	// ReasonInvalidConstraint says that the constraint is not defined, or that its definition is not valid.
	ReasonInvalidConstraint = "InvalidConstraint"
	// ReasonInvalidExpression says that an expression of the constraint does not compile.
	ReasonInvalidExpression = "InvalidExpression"
	// ReasonConstraintAccepted is the reason after the mistake was corrected: the condition is False.
	ReasonConstraintAccepted = "ConstraintAccepted"
)

// Reasons of events that celset-scheduler records.
const (
	// ReasonDevicesHeld is recorded on a pod for which others are evicted, ReasonDevicesPreempted on the evicted pods.
	ReasonDevicesHeld      = "DevicesHeld"
	ReasonDevicesPreempted = "DevicesPreempted"
	// ReasonAmountsOutOfRange is recorded on a ResourceSlice with amounts outside of the range of an int64.
	ReasonAmountsOutOfRange = "AmountsOutOfRange"
)

// Actions of events that celset-scheduler records. Scheduling and Preempting are kube-scheduler's words, too.
const (
	ActionScheduling = "Scheduling"
	ActionPreempting = "Preempting"
	ActionReading    = "Reading"
)
