// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// Reasons and actions of events, as consumers of Open Cluster Management know them;
// those of failures and warnings are our own.
const (
	reasonCreated, actionCreated = "DecisionCreate", "DecisionCreated"
	reasonUpdated, actionUpdated = "DecisionUpdate", "DecisionUpdated"
	reasonDeleted, actionDeleted = "DecisionDelete", "DecisionDeleted"
	reasonScored, actionScored   = "ScoreUpdate", "ScoreUpdated"
	reasonFailed, actionFailed   = "DecisionFailure", "DecisionFailed"
	actionWarned                 = "Scheduling"
)

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
	r.events.Eventf(object, decision, corev1.EventTypeNormal, reasonCreated, actionCreated,
		"PlacementDecision %s of Placement %s in namespace %s is created", decision.Name, object.Name, object.Namespace)
}

func (r *reconciler) updated(object *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision) {
	r.events.Eventf(object, decision, corev1.EventTypeNormal, reasonUpdated, actionUpdated,
		"The decisions in PlacementDecision %s of Placement %s in namespace %s have changed", decision.Name, object.Name, object.Namespace)
}

func (r *reconciler) deleted(object *clusterv1beta1.Placement, decision *clusterv1beta1.PlacementDecision) {
	r.events.Eventf(object, decision, corev1.EventTypeNormal, reasonDeleted, actionDeleted,
		"PlacementDecision %s of Placement %s in namespace %s is deleted", decision.Name, object.Name, object.Namespace)
}

// scored tells the scores that a changed decision comes from.
func (r *reconciler) scored(object *clusterv1beta1.Placement, result *placement.Result) {
	if summary := result.ScoreSummary(); summary != "" {
		r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonScored, actionScored, "%s", summary)
	}
}

func (r *reconciler) warn(object *clusterv1beta1.Placement, warnings []placement.Warning) {
	for _, w := range warnings {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, w.Reason, actionWarned, "%s", clip(w.Message+" in plugin "+w.Plugin))
	}
}

// A change of one cluster may change a hundred PlacementDecisions, and there is an event about each.
// Consumers wait for the decisions, not for the events, so these are recorded a moment later: the
// API server has one thing less to do while it is waited for.

const (
	// eventsAfter is how much later an event is recorded.
	eventsAfter = time.Second
	// mostLateEvents is how many wait. If there are more, the first ones don't any longer.
	mostLateEvents = 10_000
)

// lateEvents records events with a recorder, in their order, but later.
type lateEvents struct {
	recorder events.EventRecorder
	scheme   *runtime.Scheme

	mutex   sync.Mutex
	waiting []lateEvent
	// woken is told of the first one that waits.
	woken chan struct{}
	ended bool
}

// lateEvent is what is recorded at a time, with references in place of objects, which are large.
type lateEvent struct {
	at                              time.Time
	regarding, related              runtime.Object
	eventtype, reason, action, note string
}

func newLateEvents(recorder events.EventRecorder, scheme *runtime.Scheme) *lateEvents {
	return &lateEvents{recorder: recorder, scheme: scheme, woken: make(chan struct{}, 1)}
}

// Eventf implements [events.EventRecorder].
func (l *lateEvents) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	e := lateEvent{time.Now().Add(eventsAfter), l.refer(regarding), l.refer(related), eventtype, reason, action, fmt.Sprintf(note, args...)}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ended {
		l.record(e)
		return
	}
	if len(l.waiting) == mostLateEvents {
		l.recordFirst()
	}
	if l.waiting = append(l.waiting, e); len(l.waiting) == 1 {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
}

// refer returns a reference to an object, and the object if there can be none: then the recorder says why.
func (l *lateEvents) refer(object runtime.Object) runtime.Object {
	if to, err := reference.GetReference(l.scheme, object); err == nil {
		return to
	}
	return object
}

func (l *lateEvents) record(e lateEvent) {
	l.recorder.Eventf(e.regarding, e.related, e.eventtype, e.reason, e.action, "%s", e.note)
}

// Start records events as their time comes until the context ends, and then those that are left.
func (l *lateEvents) Start(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := l.recordDue(time.Now())
		if due > 0 {
			timer.Reset(due)
		}
		select {
		case <-ctx.Done():
			l.end()
			return nil
		case <-l.woken:
		case <-timer.C:
		}
	}
}

// recordDue records those whose time has come, and returns how long the next one waits, 0 if there is none.
func (l *lateEvents) recordDue(now time.Time) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for len(l.waiting) > 0 && !l.waiting[0].at.After(now) {
		l.recordFirst()
	}
	if len(l.waiting) == 0 {
		return 0
	}
	return l.waiting[0].at.Sub(now)
}

func (l *lateEvents) recordFirst() {
	l.record(l.waiting[0])
	l.waiting[0] = lateEvent{}
	l.waiting = l.waiting[1:]
}

func (l *lateEvents) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
	for len(l.waiting) > 0 {
		l.recordFirst()
	}
}

var _ events.EventRecorder = (*lateEvents)(nil)
