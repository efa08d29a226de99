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

// Expensive Placements have a queue and a worker of their own, so that the others keep
// theirs. All events go to the usual queue; its workers hand over what is expensive.
// Which of the two a Placement belongs to changes only where it has been decided, as the
// last thing that is done: whoever finds it in the other queue hands it over and does
// nothing else. So a Placement is decided by one worker at a time.

// lane is a way into the queue of a controller, also before that is there.
type lane struct {
	mutex   sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	waiting []reconcile.Request
	// background prepares Placements, which come into the queue then.
	background *fairness.Background[reconcile.Request]
}

// source opens the lane when the controller starts.
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

// add queues a Placement.
func (l *lane) add(request reconcile.Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.queue == nil {
		l.waiting = append(l.waiting, request)
		return
	}
	l.queue.Add(request)
}

// What is written here comes back as an event, and tells nothing new. All the same the Placement is
// decided once more: who is selected depends on who was, so it is seen only then that the decision
// stands. But when a cluster changes, other Placements wait for what it means for them, so that is left until
// they have been decided.

// confirmAfter is how long a Placement that was written waits until it is decided once more. If
// something else happens it is decided at once.
const confirmAfter = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// isNews passes Placements but for those that are as they were written here.
func (r *reconciler) isNews() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !r.records.isOwn(e.ObjectNew) }}
}

// confirm queues Placements that are as they were written here, after a while.
func (r *reconciler) confirm() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		if r.records.isOwn(e.ObjectNew) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, confirmAfter)
		}
	}}
}
