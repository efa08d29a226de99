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

// Expensive Placements have a queue and a worker of their own, so that they don't block the workers of other Placements. All
// events go to the usual queue, and its workers pass expensive Placements on. A Placement changes its queue only in the last
// step of a decision. A worker that takes a Placement of the other queue passes it on and does nothing else. So no two workers
// decide the same Placement at the same time.

// lane adds Placements to one queue of the controller. Before the queue exists, lane stores the Placements.
type lane struct {
	mutex   sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	waiting []reconcile.Request
	// background compiles the expressions of Placements, and then adds the Placements to the queue.
	background *fairness.Background[reconcile.Request]
}

// source returns the source through which the controller passes its queue to the lane when the controller starts.
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

// add adds a Placement to the queue, or stores it until the queue exists.
func (l *lane) add(request reconcile.Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.queue == nil {
		l.waiting = append(l.waiting, request)
		return
	}
	l.queue.Add(request)
}

// The controller's own writes cause events. After such an event the Placement is decided once more. The selection depends on
// the former selection, so only that second decision confirms the result. It is delayed, so that other Placements affected by
// the same cluster are decided first.

// confirmAfter is the delay before a Placement is decided once more after the controller's own write. Any other event queues
// the Placement at once.
const confirmAfter = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// isNews returns a predicate that ignores updates of Placements written by this controller.
func (r *reconciler) isNews() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !r.records.isOwn(e.ObjectNew) }}
}

// confirm returns a handler that queues a Placement [confirmAfter] after this controller wrote its status.
func (r *reconciler) confirm() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		if r.records.isOwn(e.ObjectNew) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, confirmAfter)
		}
	}}
}
