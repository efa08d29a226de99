// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// Names that celset-scheduler writes.
const (
	// AnnotationServes is on the Lease of a scheduler. It lists the profiles that the scheduler serves, as JSON.
	AnnotationServes = "celset.dev/serves"

	// LeaseScheduler is the name of the Lease of a scheduler that elects no leader and has no configured Lease name.
	LeaseScheduler = "celset-scheduler"

	// FieldManagerScheduler is the field manager that the scheduler uses to apply the cluster's AddOnPlacementScore on a hub.
	FieldManagerScheduler = "celset-scheduler"
)

// Conditions that celset-scheduler writes.
const (
	// ConditionDevicesHeld is True on a pod while devices are held for the pod and other pods are evicted. Its message is JSON
	// that other schedulers read.
	ConditionDevicesHeld = "celset.dev/DevicesHeld"

	// ConditionMisconfigured is True on a PodGroup whose node set constraint can't be used. It is needed because
	// kube-scheduler's condition PodGroupInitiallyScheduled has the reason Unschedulable for any waiting group.
	ConditionMisconfigured = "celset.dev/Misconfigured"

	// ConditionNodeSetAvailable is False on a PodGroup with a node set constraint while pods of the group wait because no set of
	// nodes is available. It is needed because kube-scheduler's condition PodGroupInitiallyScheduled describes only the time until
	// the group is placed first, but pods may be recreated later.
	ConditionNodeSetAvailable = "celset.dev/NodeSetAvailable"
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
	// ReasonOutranked means that another pod has taken a device of the hold, or has a hold with a higher rank.
	ReasonOutranked   = "Outranked"
	ReasonDevicesLost = "DevicesLost"
	ReasonNotRecorded = "NotRecorded"
)

// Reasons of the condition [ConditionMisconfigured], together with [ReasonEvaluationFailed]. The reasons for the status True
// are also reasons of events.
const (
	// ReasonInvalidConstraint means that the constraint is not defined, or that its definition is invalid.
	ReasonInvalidConstraint = "InvalidConstraint"
	// ReasonInvalidExpression means that an expression of the constraint does not compile.
	ReasonInvalidExpression = "InvalidExpression"
	// ReasonConstraintAccepted is the reason for the status False: the mistake was corrected.
	ReasonConstraintAccepted = "ConstraintAccepted"
)

// Reasons of the condition [ConditionNodeSetAvailable].
const (
	// ReasonNoNodeSet means that no set of nodes satisfies the constraint and can take the pods.
	ReasonNoNodeSet = "NoNodeSet"
	// ReasonSearchLimitExceeded means that the search ended before it found a set or had tried all sets.
	ReasonSearchLimitExceeded = "SearchLimitExceeded"
	// ReasonNodeSetFound is the reason for the status True: the pods that waited have nodes.
	ReasonNodeSetFound = "NodeSetFound"
)

// Reasons of events that celset-scheduler records.
const (
	// ReasonDevicesHeld is recorded on the pod that gets the devices of evicted pods. ReasonDevicesPreempted is recorded on the
	// evicted pods.
	ReasonDevicesHeld      = "DevicesHeld"
	ReasonDevicesPreempted = "DevicesPreempted"
	// ReasonAmountsOutOfRange is recorded on a ResourceSlice with amounts outside the range of an int64.
	ReasonAmountsOutOfRange = "AmountsOutOfRange"
	// The reasons below are recorded on a DeviceAttributes object after each change of its spec. ReasonAttributesAdded means that all
	// its attributes were added to devices. ReasonAttributesIncomplete means that some were not added. ReasonAttributesRejected means
	// that the object has no effect.
	ReasonAttributesAdded      = "AttributesAdded"
	ReasonAttributesIncomplete = "AttributesIncomplete"
	ReasonAttributesRejected   = "AttributesRejected"
)

// Actions of events that celset-scheduler records. kube-scheduler uses Scheduling and Preempting, too.
const (
	ActionScheduling = "Scheduling"
	ActionPreempting = "Preempting"
	ActionReading    = "Reading"
)
