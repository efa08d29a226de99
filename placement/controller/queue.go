// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/celset/celset/cel/fairness"
)

// Expensive Placements have a queue and a worker of their own, so that other Placements keep their workers. All events go to the
// usual queue, and its workers pass expensive Placements on. A Placement changes its queue only in the last step of a decision. A
// worker that finds a Placement of the other queue passes it on and does nothing else. So one worker at a time decides a
// Placement.

// lane adds Placements to the queue of a controller. It keeps them until the queue exists.
type lane struct {
	mutex   sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	waiting []reconcile.Request
	// background prepares Placements and then adds them to the queue.
	background *fairness.Background[reconcile.Request]
}

// source returns the source that gives the lane its queue when the controller starts.
func (l *lane) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.queue, l.background = queue, fairness.NewBackground[reconcile.Request](ctx)
		for _, request := range l.waiting {
			queue.Add(request)
		}
		l.waiting = nil
		return nil
	})
}

// add adds a Placement to the queue.
func (l *lane) add(request reconcile.Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.queue == nil {
		l.waiting = append(l.waiting, request)
		return
	}
	l.queue.Add(request)
}

// The controller's own writes come back as events. The Placement is decided once more after such an event, because the selection
// depends on the former selection: only that decision confirms the result. It is delayed, so that Placements affected by the same
// cluster change are decided first.

// confirmAfter is the delay before a written Placement is decided once more. Any other event causes a decision at once.
const confirmAfter = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// isNews returns a predicate that drops updates written by this controller.
func (r *reconciler) isNews() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !r.records.isOwn(e.ObjectNew) }}
}

// confirm returns a handler that adds Placements written by this controller to the queue after [confirmAfter].
func (r *reconciler) confirm() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		if r.records.isOwn(e.ObjectNew) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, confirmAfter)
		}
	}}
}
