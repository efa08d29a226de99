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

// eventsAfter is the delay before an event is sent. After a change of a cluster, four of ten requests in a fleet are events,
// and the writes of decisions must not wait for events.
const eventsAfter = time.Second

// lateEvents records each event after [eventsAfter]. Events that still wait when the process ends are lost.
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

// refer returns a reference to an object, so that a waiting event does not keep the large object in memory. If no reference can
// be made, it returns the object, and the recorder logs the reason.
func (l lateEvents) refer(object runtime.Object) runtime.Object {
	if to, err := reference.GetReference(l.scheme, object); err == nil {
		return to
	}
	return object
}

// maxNote is the maximum length of an event's note in bytes, without the dots that clip adds. The API server's limit is a
// little higher.
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

// scored records an event with the scores that led to a changed decision.
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
