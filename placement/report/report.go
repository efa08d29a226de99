// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report says in data how a Placement was decided: the debug endpoint of celset-placement and kubectl celset have
// the same answer.
//
//	result, err := scheduler.Schedule(ctx, object, snapshot, now)
//	answer := report.New(object, result, err, report.Options{All: true})
package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Limits of what a Report lists and quotes.
const (
	// MaxRemoved is how many removed clusters an answer of the debug endpoint lists for each filter.
	MaxRemoved = 1000
	// MaxReason is how many bytes of a reason it quotes, which can have an expression
	// in it, and MaxMessage of what is said once.
	MaxReason  = 1 << 10
	MaxMessage = 32 << 10
)

// Report is how a Placement was decided. The names of fields that the debug server of
// Open Cluster Management has, too, mean the same.
type Report struct {
	// Error is why the decision could not be made.
	Error string `json:"error,omitempty"`
	// Placement is what was decided.
	Placement *clusterv1beta1.Placement `json:"placement"`
	// Responsible tells whether the controller decides this Placement.
	Responsible bool `json:"responsible"`
	// Stands tells that the former decision stands, so that nothing would be written
	// but conditions.
	Stands bool `json:"formerDecisionStands"`
	// Undecided tells that no decision could be made, and that there is no former one.
	Undecided bool `json:"undecided,omitempty"`
	// Status is what would be written as the status of the Placement.
	Status clusterv1beta1.PlacementStatus `json:"status"`
	// Misconfigurations are what is wrong with the Placement.
	Misconfigurations []Misconfiguration `json:"misconfigurations,omitempty"`
	// Warnings are what there would be events about.
	Warnings []Warning `json:"warnings,omitempty"`
	// Available is what there was to choose from.
	Available Available `json:"available"`
	// Filters are the filters that ran, in their order.
	Filters []Filter `json:"filteredPipelineResults"`
	// Prioritizers are those that took part.
	Prioritizers []Prioritizer `json:"prioritizeResults"`
	// Candidates are the clusters that passed the filters, the most wanted first.
	Candidates []Candidate `json:"aggregatedScores"`
	// Groups are the decision groups with the PlacementDecisions that there would be.
	Groups []Group `json:"decisionGroups"`
	// Time is when it was decided, or what the request said that it is. now() is the
	// multiple of ten seconds at or before it.
	Time metav1.Time `json:"time"`
	// Requeue is when the outcome may change though no object does.
	Requeue *metav1.Time `json:"requeueTime,omitempty"`
	// Evaluated is how many clusters the predicates were asked about, and Cost what the
	// CEL expressions cost, in CEL cost units.
	Evaluated int    `json:"evaluatedClusters"`
	Cost      uint64 `json:"celCost"`

	// named: clusters were asked for by name.
	named bool
}

// Misconfiguration is something in the Placement that can't be understood.
type Misconfiguration struct {
	Plugin string `json:"plugin"`
	// Field leads to it.
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Warning is something that does not keep the Placement from being decided.
type Warning struct {
	Reason  string `json:"reason"`
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
}

// Available is what there was to choose from.
type Available struct {
	// Bound are the ManagedClusterSets that are bound to the namespace, Eligible those
	// of them that the Placement wants.
	Bound    []string `json:"boundClusterSets"`
	Eligible []string `json:"eligibleClusterSets"`
	// Clusters is how many clusters they have.
	Clusters int `json:"clusters"`
	// Missing are the clusters that were asked for by name and are not among them.
	Missing []string `json:"notAvailable,omitempty"`
}

// Filter is the verdict of one filter.
type Filter struct {
	Name string `json:"name"`
	// Passed are the clusters that it and those before it let through.
	Passed []string `json:"filteredClusters"`
	// Removed are the clusters that it removed, at most [Options].Removed, and Count is how
	// many these are in all.
	Removed []Removal `json:"removed"`
	Count   int       `json:"removedClusters"`
}

// Removal is why a filter removed a cluster.
type Removal struct {
	Cluster string `json:"clusterName"`
	// Reason is a sentence without its subject, the cluster.
	Reason string `json:"reason"`
}

// Prioritizer is the verdict of one prioritizer.
type Prioritizer struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight"`
	// Scores are those of the candidates, before weighting.
	Scores map[string]int64 `json:"scores"`
}

// Candidate is what became of a cluster that passed the filters.
type Candidate struct {
	Cluster string `json:"clusterName"`
	// Score is the sum of the weighted scores.
	Score    int64 `json:"score"`
	Selected bool  `json:"selected"`
	// Reason says why it is not selected.
	Reason string `json:"reason,omitempty"`
	// ClusterSet is the first eligible one that it is in.
	ClusterSet string `json:"clusterSet"`
	// Predicate is the index of the first one that matches it; nil if there is none.
	Predicate *int `json:"predicate,omitempty"`
	// Avoided is the key of a taint that puts it behind others of the same score.
	Avoided string `json:"avoidedTaint,omitempty"`
}

// Group is a decision group.
type Group struct {
	Index int    `json:"decisionGroupIndex"`
	Name  string `json:"decisionGroupName"`
	// Decisions are its PlacementDecisions.
	Decisions []Decision `json:"placementDecisions"`
}

// Decision is what one PlacementDecision would say.
type Decision struct {
	Name     string                           `json:"name"`
	Clusters []clusterv1beta1.ClusterDecision `json:"decisions"`
}

// Clip cuts what is longer than a number of bytes.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
