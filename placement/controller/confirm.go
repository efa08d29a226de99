// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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

// isOwn tells whether an object is as its status was last written here.
func (r *records) isOwn(object client.Object) bool {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	known := r.of[client.ObjectKeyFromObject(object)]
	return known.uid == object.GetUID() && known.version != "" && known.version == object.GetResourceVersion()
}

// has tells whether an object is known in just this version.
func (l *ledger) has(object client.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.objects[client.ObjectKeyFromObject(object)]
	return known != nil && known.ResourceVersion != "" && known.UID == object.GetUID() && known.ResourceVersion == object.GetResourceVersion()
}

// handler keeps the ledger and then queues the Placements of the objects: who decides them at once has to
// find there what has changed.
func (l *ledger) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { l.seen(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			l.seen(e.ObjectNew, q)
			if placementOf(e.ObjectOld) != placementOf(e.ObjectNew) {
				enqueue(e.ObjectOld, q, 0)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			l.remove(e.Object)
			enqueue(e.Object, q, 0)
		},
	}
}

func (l *ledger) seen(object client.Object, q queue) {
	decision, ok := object.(*clusterv1beta1.PlacementDecision)
	switch {
	case !ok:
	case l.has(object):
		enqueue(object, q, confirmAfter)
	default:
		l.set(decision)
		enqueue(object, q, 0)
	}
}

// enqueue queues the Placement that a PlacementDecision belongs to by its label.
func enqueue(object client.Object, q queue, after time.Duration) {
	request := reconcile.Request{NamespacedName: placementOf(object)}
	switch {
	case request.Name == "":
	case after > 0:
		q.AddAfter(request, after)
	default:
		q.Add(request)
	}
}
