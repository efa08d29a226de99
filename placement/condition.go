// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// unselected is what conditions say of clusters on which evaluations failed, where a decision is made.
const unselected = ", which are not selected"

// standing is what conditions say where no decision is made.
func (r *Result) standing() string {
	if r.Standing == 0 {
		return "no cluster is selected"
	}
	return "the former decision stands"
}

// report writes what a run has to say into its result: conditions and warnings.
type report struct {
	result    *Result
	placement *clusterv1beta1.Placement
	now       time.Time
	// lacking is what no cluster has, though the Placement names it.
	lacking []string
}

// satisfied sets the condition PlacementSatisfied.
func (r *report) satisfied(status metav1.ConditionStatus, reason, message string) {
	r.condition(clusterv1beta1.PlacementConditionSatisfied, status, reason, message)
}

// configured sets the condition PlacementMisconfigured.
func (r *report) configured(wrong misconfigurations) {
	if len(wrong) > 0 {
		r.condition(clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionTrue, wellknown.ReasonMisconfigured, wrong.message())
		return
	}
	r.condition(clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionFalse, wellknown.ReasonConfigured,
		"Placement configurations check pass")
}

// misconfigured sets the condition PlacementSatisfied where the Placement can't be understood.
func (r *report) misconfigured() {
	r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, "The Placement is misconfigured; "+r.result.standing())
}

// notEvaluated sets the condition PlacementEvaluationFailed where no predicate was asked about any cluster.
func (r *report) notEvaluated(why string) {
	r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionFalse, wellknown.ReasonNotEvaluated, "Nothing was evaluated: "+why)
}

// evaluated sets the condition PlacementEvaluationFailed. Where the former decision stands, the clusters may be selected.
func (r *report) evaluated(failed []Removal, stands bool) {
	if len(failed) == 0 {
		r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionFalse, wellknown.ReasonEvaluationsSucceeded, "All evaluations succeeded")
		return
	}
	which := unselected
	if stands {
		which = ""
	}
	texts := []string{fmt.Sprintf("The evaluation failed on %d clusters%s:", len(failed), which)}
	for _, removal := range failed[:min(named, len(failed))] {
		texts = append(texts, fmt.Sprintf("%s %s", removal.Cluster, removal.Reason))
	}
	if n := len(failed) - named; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionTrue, wellknown.ReasonEvaluationFailed, strings.Join(texts, "\n"))
}

// condition adds one; the message is cut to what the API server takes.
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

// summary says what the filters and the constraints left of the available clusters.
func (r *report) summary() string {
	parts := []string{fmt.Sprintf("%d clusters available", len(r.result.Available.Clusters))}
	for _, filtered := range r.result.Filters {
		parts = append(parts, fmt.Sprintf("%s removed %d", filtered.Filter, len(filtered.Removed)))
	}
	spread := 0
	for _, c := range r.result.Candidates {
		switch c.Reason.(type) {
		case *Skewed, *NoTopology:
			spread++
		}
	}
	if spread > 0 {
		parts = append(parts, fmt.Sprintf("%s removed %d", Spread, spread))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// scheduled sets the condition PlacementSatisfied where clusters were available.
func (r *report) scheduled(selected int) {
	wanted := r.placement.Spec.NumberOfClusters
	switch {
	case wanted != nil && *wanted == 0:
		// Status and reason are those of Open Cluster Management. Its message would blame the predicates.
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoneMatched,
			"spec.numberOfClusters is 0, so no cluster is selected; leave it out to select all"+r.summary()+r.lacks())
	case selected == 0:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNoneMatched, "No ManagedCluster matches any of the cluster predicate"+r.summary()+r.lacks())
	case wanted == nil || int(*wanted) <= selected:
		r.satisfied(metav1.ConditionTrue, wellknown.ReasonScheduled, "All cluster decisions scheduled"+r.lacks())
	default:
		r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled,
			fmt.Sprintf("%d cluster decisions unscheduled", int(*wanted)-selected)+r.summary()+r.lacks())
	}
}

// Warning is something that does not keep a Placement from being decided: an event.
type Warning struct {
	// Reason is one of [wellknown.ReasonScoreExpired] and the constants after it.
	Reason string
	// Plugin is the filter or prioritizer it is about.
	Plugin string
	// Message names the first few objects.
	Message string
}

// warn adds a warning about subjects, if there are any. format has a %s for them.
func (r *report) warn(reason, plugin, format string, subjects []string) {
	if len(subjects) > 0 {
		r.result.Warnings = append(r.result.Warnings, Warning{reason, plugin, fmt.Sprintf(format, firstOf(subjects))})
	}
}

// outOfRange warns about subjects with values that are out of their range, and counts
// them.
func (r *report) outOfRange(reason, plugin, format string, subjects []string) {
	r.warn(reason, plugin, format, subjects)
	if len(subjects) > 0 {
		if r.result.OutOfRange == nil {
			r.result.OutOfRange = map[string]int{}
		}
		r.result.OutOfRange[plugin] += len(subjects)
	}
}

// named is how many of many things messages name.
const named = 3

// firstOf names the first few of many things and counts the others.
func firstOf(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}
