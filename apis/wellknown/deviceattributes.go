// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// Conditions of a DeviceAttributes object, which celset-scheduler writes.
const (
	// ConditionAttributesAccepted is True if the spec is valid and in effect. If it is False, no device gets an attribute of the
	// object.
	ConditionAttributesAccepted = "Accepted"
	// ConditionAttributesComplete is False if an expression failed, a row matches no device, or a device has too many attributes.
	ConditionAttributesComplete = "Complete"
	// ConditionAttributesConflicted is True if another object defines an attribute of a device with a different value.
	ConditionAttributesConflicted = "Conflicted"
)

// Reasons of the condition [ConditionAttributesAccepted]. [ReasonInvalidExpression] is another one.
const (
	ReasonAttributesAccepted = "Accepted"
	ReasonInvalidSpec        = "InvalidSpec"
	// ReasonDomainInUse means that a driver publishes attributes in the domain of the object.
	ReasonDomainInUse = "DomainInUse"
	// ReasonTooManyObjects means that as many older objects are in effect as the limit allows.
	ReasonTooManyObjects = "TooManyObjects"
)

// Reasons of the condition [ConditionAttributesComplete]. [ReasonEvaluationFailed] is another one.
const (
	ReasonAttributesComplete = "Complete"
	// ReasonNotInEffect means that the object is not accepted.
	ReasonNotInEffect   = "NotInEffect"
	ReasonRowsUnmatched = "RowsUnmatched"
	// ReasonLimitExceeded means that a device would exceed Kubernetes' limits for attributes.
	ReasonLimitExceeded = "LimitExceeded"
)

// Reasons of the condition [ConditionAttributesConflicted].
const (
	ReasonDifferentValues = "DifferentValues"
	ReasonNoConflict      = "NoConflict"
)
