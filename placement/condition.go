// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/verdict"
)

// unselected is a clause of conditions about clusters on which an evaluation failed. It is added if a decision was made.
const unselected = ", so these clusters are not selected"

// report writes the conditions of a Placement into its result.
type report struct {
	result    *Result
	placement *clusterv1beta1.Placement
	now       time.Time
	// found has messages about names that the Placement reads but no cluster has. Some conditions end with these messages.
	found *finding.Findings
}

// satisfied sets the condition PlacementSatisfied.
func (r *report) satisfied(status metav1.ConditionStatus, reason, message string) {
	r.condition(clusterv1beta1.PlacementConditionSatisfied, status, reason, message)
}

// configured sets the condition PlacementMisconfigured.
func (r *report) configured(wrong finding.Misconfigurations) {
	if len(wrong) > 0 {
		r.condition(clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionTrue, wellknown.ReasonMisconfigured, wrong.Message())
		return
	}
	r.condition(clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionFalse, wellknown.ReasonConfigured,
		"Placement configurations check pass")
}

// misconfigured sets the condition PlacementSatisfied of a Placement that has mistakes.
func (r *report) misconfigured() {
	r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, "The Placement is misconfigured; "+r.result.formerClause())
}

// notEvaluated sets the condition PlacementEvaluationFailed if no cluster was evaluated.
func (r *report) notEvaluated(why string) {
	r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionFalse, wellknown.ReasonNotEvaluated, "No expression was evaluated: "+why)
}

// evaluated sets the condition PlacementEvaluationFailed. If keepsFormer is set, the former decision stays in effect. The
// message then does not say that the clusters in failed are not selected.
func (r *report) evaluated(failed []candidate.Removal, keepsFormer bool) {
	if len(failed) == 0 {
		r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionFalse, wellknown.ReasonEvaluationsSucceeded, "All evaluations succeeded")
		return
	}
	which := unselected
	if keepsFormer {
		which = ""
	}
	texts := []string{fmt.Sprintf("The evaluation failed on %d clusters%s:", len(failed), which)}
	for _, removal := range failed[:min(finding.MostNamed, len(failed))] {
		texts = append(texts, fmt.Sprintf("%s %s", removal.Cluster, removal.Reason))
	}
	if n := len(failed) - finding.MostNamed; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionTrue, wellknown.ReasonEvaluationFailed, strings.Join(texts, "\n"))
}

// condition adds a condition. It truncates the message to the maximum length that the API server accepts.
func (r *report) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	r.result.Conditions = append(r.result.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: cut(message),
		ObservedGeneration: r.placement.Generation, LastTransitionTime: metav1.NewTime(r.now),
	})
}

const maxMessage = 32768

func cut(message string) string {
	const ellipsis = "…"
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}

// summary returns the number of available clusters, and how many of them each filter removed.
func (r *report) summary() string {
	parts := []string{fmt.Sprintf("%d clusters available", len(r.result.Available.Clusters))}
	for _, filtered := range r.result.Filters {
		parts = append(parts, fmt.Sprintf("%s removed %d", filtered.Filter, len(filtered.Removed)))
	}
	spread := 0
	for _, c := range r.result.Candidates {
		switch c.Reason.(type) {
		case *candidate.Skewed, *candidate.NoTopology:
			spread++
		}
	}
	if spread > 0 {
		parts = append(parts, fmt.Sprintf("%s removed %d", finding.Spread, spread))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// scheduled sets the condition PlacementSatisfied if there were available clusters. selected is the number of selected
// clusters.
func (r *report) scheduled(selected int) {
	wanted := r.placement.Spec.NumberOfClusters
	switch {
	case wanted != nil && *wanted == 0:
		// Status and reason are the same as in Open Cluster Management, whose message would blame the predicates.
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoneMatched,
			"spec.numberOfClusters is 0, so no cluster is selected; to select all clusters, remove the field"+r.summary()+r.found.Lacks())
	case selected == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoneMatched, "No ManagedCluster matches any of the cluster predicate"+r.summary()+r.found.Lacks())
	case wanted == nil || int(*wanted) <= selected:
		r.satisfied(metav1.ConditionTrue, wellknown.ReasonScheduled, "All cluster decisions scheduled"+r.found.Lacks())
	default:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled,
			fmt.Sprintf("%d cluster decisions unscheduled", int(*wanted)-selected)+r.summary()+r.found.Lacks())
	}
}

// nothing reports whether no cluster is available. In that case it sets the condition PlacementSatisfied, and the decision is
// empty even if a predicate is invalid.
func (r *report) nothing(err error) bool {
	available := r.result.Available
	switch {
	case len(available.Bound) == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoBindings, "No valid ManagedClusterSetBindings found in placement namespace")
	case len(available.Eligible) == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoIntersection,
			fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(r.placement.Spec.ClusterSets, ","))+r.found.Lacks())
	case err == nil && len(available.Clusters) == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonSetsEmpty,
			fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(available.Eligible, ","))+r.found.Lacks())
	default:
		return false
	}
	return true
}

// keepFormer drops the decision, so that the former decision stays in effect, and reports err as the reason. It keeps only the
// first condition.
func (r *report) keepFormer(err error) {
	r.result.Decision, r.result.Conditions = nil, r.result.Conditions[:1]
	r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, fmt.Sprintf("%s; %s", err, r.result.formerClause()))
}

// overrun sets the conditions for evaluations that exceeded a time limit.
func (r *report) overrun() {
	r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionTrue, wellknown.ReasonEvaluationFailed,
		overrunMessage(r.result.Overrun, r.result.formerClause(), len(r.result.Available.Clusters)))
	r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, "The evaluation takes too long; "+r.result.formerClause())
}

// overrunMessage names the exceeded limit and says what to do.
func overrunMessage(o *verdict.Overrun, standing string, available int) string {
	var texts []string
	if o.Evaluations {
		texts = append(texts, fmt.Sprintf("The evaluation takes longer than %s on a cluster; %s. Write a cheaper expression, or put a cheap condition that excludes many clusters before it:", o.Limit.Limit, standing))
	} else {
		texts = append(texts, fmt.Sprintf("The evaluation takes longer than %s on all clusters together; %s. The evaluation continues later. Write cheaper expressions, or put cheap conditions that exclude many clusters before them:", o.Limit.Limit, standing))
	}
	for _, removal := range o.Late {
		texts = append(texts, removal.Cluster+" "+removal.Reason.String())
	}
	texts = append(texts, fmt.Sprintf("%d of %d clusters are evaluated", available-o.Pending, available))
	return strings.Join(texts, "\n")
}

// Misconfigured adds a mistake that was found while the decision was written to the hub, and sets its condition. The decision
// stays in the result, because the mistake did not prevent the write.
func (r *Result) Misconfigured(placement *clusterv1beta1.Placement, wrong *finding.Misconfiguration) {
	r.replace(placement, wrong, clusterv1beta1.PlacementConditionMisconfigured)
}

// KeepFormer adds a mistake that prevented the decision from being written to the hub. The former decision stays in effect, and
// the conditions say why.
func (r *Result) KeepFormer(placement *clusterv1beta1.Placement, wrong *finding.Misconfiguration) {
	r.Decision = nil
	r.Conditions = slices.Clone(r.Conditions)
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.Type == wellknown.ConditionEvaluationFailed {
			c.Message = strings.Replace(c.Message, unselected, "", 1)
		}
	}
	r.replace(placement, wrong, clusterv1beta1.PlacementConditionMisconfigured, clusterv1beta1.PlacementConditionSatisfied).misconfigured()
}

// replace adds a mistake and sets the condition PlacementMisconfigured. Before that it removes the conditions of the given
// types.
func (r *Result) replace(placement *clusterv1beta1.Placement, wrong *finding.Misconfiguration, types ...string) *report {
	r.Misconfigurations = append(slices.Clone(r.Misconfigurations), wrong)
	r.Conditions = slices.DeleteFunc(slices.Clone(r.Conditions), func(c metav1.Condition) bool { return slices.Contains(types, c.Type) })
	to := &report{result: r, placement: placement, now: r.now}
	to.configured(r.Misconfigurations)
	return to
}
