// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// What celset-placement reads and writes.
const (
	// AnnotationPlacement of a Placement, with the value "true", gives it to celset on a hub where another controller decides
	// the others.
	AnnotationPlacement = "celset.dev/placement"

	// AnnotationTieBreak of a Placement says which of several candidates with the same total comes first: by "name", or in an
	// order that is "random", though always the same for one Placement.
	AnnotationTieBreak = "celset.dev/tie-break"

	// AnnotationConfirmed is on a PlacementDecision that was written though it was as it should be, when a placement controller
	// started: its value is the resource version that the decision had.
	AnnotationConfirmed = "celset.dev/confirmed"

	// LeasePlacement is the Lease by which replicas elect a leader.
	LeasePlacement = "celset-placement"

	// FieldManagerKueue is Kueue's field manager for the admission of Workloads, whose nominated clusters celset-placement
	// applies with --multikueue.
	FieldManagerKueue = "kueue-admission"
)

// ConditionEvaluationFailed is the type of the condition of a Placement that says that CEL expressions failed on some clusters.
// Open Cluster Management defines the other conditions.
const ConditionEvaluationFailed = "PlacementEvaluationFailed"

// Reasons of the condition PlacementSatisfied, as in Open Cluster Management.
const (
	ReasonNoBindings     = "NoManagedClusterSetBindings"
	ReasonNoIntersection = "NoIntersection"
	ReasonSetsEmpty      = "AllManagedClusterSetsEmpty"
	ReasonNoneMatched    = "NoManagedClusterMatched"
	ReasonScheduled      = "AllDecisionsScheduled"
	ReasonNotScheduled   = "NotAllDecisionsScheduled"
)

// Reasons of the condition PlacementMisconfigured, as in Open Cluster Management.
const (
	ReasonMisconfigured = "Misconfigured"
	ReasonConfigured    = "Succeedconfigured"
)

// Reasons of the condition [ConditionEvaluationFailed].
const (
	ReasonEvaluationFailed     = "EvaluationFailed"
	ReasonEvaluationsSucceeded = "EvaluationsSucceeded"
	ReasonNotEvaluated         = "NotEvaluated"
)

// Reasons and actions of events about decisions, as in Open Cluster Management, whose consumers know them. There the reason is a
// verb and the action is in the past.
const (
	ReasonDecisionCreate  = "DecisionCreate"
	ReasonDecisionUpdate  = "DecisionUpdate"
	ReasonDecisionDelete  = "DecisionDelete"
	ReasonScoreUpdate     = "ScoreUpdate"
	ActionDecisionCreated = "DecisionCreated"
	ActionDecisionUpdated = "DecisionUpdated"
	ActionDecisionDeleted = "DecisionDeleted"
	ActionScoreUpdated    = "ScoreUpdated"
)

// Reasons of warnings about Placements, which are events with the action [ActionDeciding].
const (
	// ReasonDecisionFailed says that a decision could not be made or written.
	ReasonDecisionFailed = "DecisionFailed"
	// ReasonScoreExpired says that AddOnPlacementScores of candidates are expired.
	ReasonScoreExpired = "ScoreExpired"
	// ReasonScoreOutOfRange says that scores of candidates were clamped.
	ReasonScoreOutOfRange = "ScoreOutOfRange"
	// ReasonAmountOutOfRange says that amounts of candidates can't be true.
	ReasonAmountOutOfRange = "AmountOutOfRange"
	// ReasonVersionPreReleased says that versions of clusters are less than the release of their numbers.
	ReasonVersionPreReleased = "VersionPreReleased"
)

// Reasons of warnings about Workloads of Kueue, which are events with the action [ActionNominating].
const (
	// ReasonPlacementNotFound says that there is no Placement of the name that the Workload has in a label.
	ReasonPlacementNotFound = "PlacementNotFound"
	// ReasonNoWorkerDecided says that the Placement decides no worker cluster of the MultiKueueConfig.
	ReasonNoWorkerDecided = "NoWorkerDecided"
)

// Actions of warnings.
const (
	ActionDeciding   = "Deciding"
	ActionNominating = "Nominating"
)
