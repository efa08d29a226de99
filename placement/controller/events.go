// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

// eventsAfter is how long after what happened an event is recorded. When a cluster changes, four of ten
// requests that it takes on a fleet are events, and what is waited for are the decisions.
const eventsAfter = time.Second

// lateEvents records events [eventsAfter]. Those that wait when the process ends are lost.
type lateEvents struct {
	events.EventRecorder
	scheme *runtime.Scheme
}

// Eventf implements [events.EventRecorder].
func (l lateEvents) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	regarding, related, note = l.refer(regarding), l.refer(related), fmt.Sprintf(note, args...)
	time.AfterFunc(eventsAfter, func() {
		l.EventRecorder.Eventf(regarding, related, eventtype, reason, action, "%s", note)
	})
}

// refer returns a reference in place of an object, which is large. Where there can be none it returns the object:
// the recorder logs why.
func (l lateEvents) refer(object runtime.Object) runtime.Object {
	if to, err := reference.GetReference(l.scheme, object); err == nil {
		return to
	}
	return object
}

// maxNote is how many bytes the API server takes as the note of an event, less room
// for the end of one that is cut.
const maxNote = 1000

func clip(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote], "") + "......"
}

func (r *reconciler) created(object *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision) {
	r.events.Eventf(object, decision, corev1.EventTypeNormal, wellknown.ReasonDecisionCreate, wellknown.ActionDecisionCreated,
		"PlacementDecision %s of Placement %s in namespace %s is created", decision.Name, object.Name, object.Namespace)
}

func (r *reconciler) updated(object *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision) {
	r.events.Eventf(object, decision, corev1.EventTypeNormal, wellknown.ReasonDecisionUpdate, wellknown.ActionDecisionUpdated,
		"The decisions in PlacementDecision %s of Placement %s in namespace %s have changed", decision.Name, object.Name, object.Namespace)
}

func (r *reconciler) deleted(object *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision) {
	r.events.Eventf(object, decision, corev1.EventTypeNormal, wellknown.ReasonDecisionDelete, wellknown.ActionDecisionDeleted,
		"PlacementDecision %s of Placement %s in namespace %s is deleted", decision.Name, object.Name, object.Namespace)
}

// scored tells the scores that a changed decision comes from.
func (r *reconciler) scored(object *clusterv1beta1.Placement, result *placement.Result) {
	if summary := result.ScoreSummary(); summary != "" {
		r.events.Eventf(object, nil, corev1.EventTypeNormal, wellknown.ReasonScoreUpdate, wellknown.ActionScoreUpdated, "%s", summary)
	}
}

func (r *reconciler) warn(object *clusterv1beta1.Placement, warnings []placement.Warning) {
	for _, w := range warnings {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, w.Reason, wellknown.ActionDeciding, "%s", clip(w.Message+" in plugin "+w.Plugin))
	}
}
