// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report describes a decision about a Placement as data. The debug endpoint of celset-placement and kubectl celset
// share it.
//
//	result, err := scheduler.Schedule(ctx, object, snapshot, now)
//	answer := report.New(object, result, err, report.Options{All: true})
package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Limits for the contents of a Report.
const (
	// MaxRemoved is the maximum number of removed clusters that the debug endpoint lists for each filter.
	MaxRemoved = 1000
	// MaxReason is the maximum length in bytes of a quoted reason, which may contain an expression. MaxMessage is the maximum
	// length in bytes of a message that occurs only once.
	MaxReason  = 1 << 10
	MaxMessage = 32 << 10
)

// Report describes a decision about a Placement. Fields with the same names as in the debug server of Open Cluster Management
// have the same meaning.
type Report struct {
	// Error explains why the decision failed. It is empty if the decision succeeded.
	Error string `json:"error,omitempty"`
	// Placement is the Placement that was decided.
	Placement *clusterv1beta1.Placement `json:"placement"`
	// Responsible is true if the controller decides this Placement.
	Responsible bool `json:"responsible"`
	// KeepsFormer is true if the former decision stays in effect, so that the controller would write only conditions.
	KeepsFormer bool `json:"formerDecisionStands"`
	// Undecided is true if the decision failed and there is no former decision.
	Undecided bool `json:"undecided,omitempty"`
	// Status is the status that the controller would write to the Placement.
	Status clusterv1beta1.PlacementStatus `json:"status"`
	// Misconfigurations are the mistakes in the Placement.
	Misconfigurations []Misconfiguration `json:"misconfigurations,omitempty"`
	// Warnings are the warnings that the controller records as events.
	Warnings []Warning `json:"warnings,omitempty"`
	// Available describes the clusters that the Placement may select.
	Available Available `json:"available"`
	// Filters are the results of the filters, in the order of the filters.
	Filters []Filter `json:"filteredPipelineResults"`
	// Prioritizers are the results of the prioritizers.
	Prioritizers []Prioritizer `json:"prioritizeResults"`
	// Candidates are the clusters that passed all filters, best rank first.
	Candidates []Candidate `json:"aggregatedScores"`
	// Groups are the decision groups with their PlacementDecisions.
	Groups []Group `json:"decisionGroups"`
	// Time is the time of the decision. A request may set it. The value of now() is this time, rounded down to ten seconds.
	Time metav1.Time `json:"time"`
	// Requeue is the time at which the decision may change although no object changes.
	Requeue *metav1.Time `json:"requeueTime,omitempty"`
	// Evaluated is the number of clusters on which predicates were evaluated. Cost is the total cost of the CEL expressions in CEL
	// cost units.
	Evaluated int    `json:"evaluatedClusters"`
	Cost      uint64 `json:"celCost"`

	// named is true if the request named clusters to list.
	named bool
}

// Misconfiguration is an invalid field of the Placement.
type Misconfiguration struct {
	Plugin string `json:"plugin"`
	// Field is the path of the field.
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Warning is a problem that does not prevent a decision.
type Warning struct {
	Reason  string `json:"reason"`
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
}

// Available describes the clusters that a Placement may select.
type Available struct {
	// Bound are the ManagedClusterSets that are bound to the namespace. Eligible are the bound sets that the Placement selects
	// from.
	Bound    []string `json:"boundClusterSets"`
	Eligible []string `json:"eligibleClusterSets"`
	// Clusters is the number of clusters in the eligible sets.
	Clusters int `json:"clusters"`
	// Missing are the clusters named in the request that are in no eligible set.
	Missing []string `json:"notAvailable,omitempty"`
}

// Filter is the result of one filter.
type Filter struct {
	Name string `json:"name"`
	// Passed are the clusters that passed this filter and all earlier filters.
	Passed []string `json:"filteredClusters"`
	// Removed are the clusters that this filter removed, at most [Options].Removed. Count is the number of all removed clusters.
	Removed []Removal `json:"removed"`
	Count   int       `json:"removedClusters"`
}

// Removal is a cluster that a filter removed, with the reason.
type Removal struct {
	Cluster string `json:"clusterName"`
	// Reason is a sentence without its subject, which is the cluster.
	Reason string `json:"reason"`
}

// Prioritizer is the result of one prioritizer.
type Prioritizer struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight"`
	// Scores maps each candidate to its score, before the weight is applied.
	Scores map[string]int64 `json:"scores"`
}

// Candidate is a cluster that passed all filters.
type Candidate struct {
	Cluster string `json:"clusterName"`
	// Score is the sum of the weighted scores.
	Score    int64 `json:"score"`
	Selected bool  `json:"selected"`
	// Reason explains why the cluster is not selected.
	Reason string `json:"reason,omitempty"`
	// ClusterSet is the first eligible set that contains the cluster.
	ClusterSet string `json:"clusterSet"`
	// Predicate is the index of the first predicate that matches the cluster. It is nil if the Placement has no predicates.
	Predicate *int `json:"predicate,omitempty"`
	// Avoided is the key of a taint that ranks the cluster behind other clusters with the same score.
	Avoided string `json:"avoidedTaint,omitempty"`
}

// Group is a decision group.
type Group struct {
	Index int    `json:"decisionGroupIndex"`
	Name  string `json:"decisionGroupName"`
	// Decisions are the PlacementDecisions of the group.
	Decisions []Decision `json:"placementDecisions"`
}

// Decision is the content of one PlacementDecision.
type Decision struct {
	Name     string                           `json:"name"`
	Clusters []clusterv1beta1.ClusterDecision `json:"decisions"`
}

// Clip shortens a text to limit bytes and adds "...". It does not change a shorter text.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
