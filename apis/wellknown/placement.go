// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// Names that celset-placement reads and writes.
const (
	// AnnotationPlacement, with the value "true", assigns a Placement to celset. It is needed on a hub where another controller
	// handles all other Placements.
	AnnotationPlacement = "celset.dev/placement"

	// AnnotationTieBreak of a Placement specifies the order of candidates with the same total score: "name" or "random". The
	// "random" order of one Placement never changes.
	AnnotationTieBreak = "celset.dev/tie-break"

	// AnnotationConfirmed is on a PlacementDecision that a placement controller wrote again at its start, without other
	// changes. The value is the previous resource version of the PlacementDecision.
	AnnotationConfirmed = "celset.dev/confirmed"

	// LeasePlacement is the name of the Lease that replicas of celset-placement use to elect a leader.
	LeasePlacement = "celset-placement"

	// FieldManagerKueue is Kueue's field manager for the admission of Workloads. celset-placement applies the nominated clusters of
	// Workloads with this field manager if --multikueue is set.
	FieldManagerKueue = "kueue-admission"
)

// ConditionEvaluationFailed is the type of the condition of a Placement whose CEL expressions failed on some clusters. Open
// Cluster Management defines the other conditions.
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

// Reasons and actions of events about decisions. They are the same as in Open Cluster Management, because consumers rely on
// them. In these events the reason is a verb and the action is in the past tense.
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
	// ReasonDecisionFailed means that a decision could not be made or written.
	ReasonDecisionFailed = "DecisionFailed"
	// ReasonScoreExpired means that AddOnPlacementScores of candidates are expired.
	ReasonScoreExpired = "ScoreExpired"
	// ReasonScoreOutOfRange means that scores of candidates were clamped.
	ReasonScoreOutOfRange = "ScoreOutOfRange"
	// ReasonAmountOutOfRange means that clusters report amounts that are not numbers from 0 to 2^63-1.
	ReasonAmountOutOfRange = "AmountOutOfRange"
	// ReasonVersionPreReleased means that versions of clusters are pre-releases, which are less than the release of the same number.
	ReasonVersionPreReleased = "VersionPreReleased"
)

// Reasons of warnings about Workloads of Kueue, which are events with the action [ActionNominating].
const (
	// ReasonPlacementNotFound means that the Placement named in a label of the Workload does not exist.
	ReasonPlacementNotFound = "PlacementNotFound"
	// ReasonNoWorkerDecided means that the Placement selects no worker cluster of the MultiKueueConfig.
	ReasonNoWorkerDecided = "NoWorkerDecided"
)

// Actions of events that warn about Placements and Workloads.
const (
	ActionDeciding   = "Deciding"
	ActionNominating = "Nominating"
)
