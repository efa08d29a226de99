// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/placement"
)

// ledger has the PlacementDecisions of the hub in the newest version that was seen,
// be it in an event, a list or the answer to a write. So a Placement is decided with
// what was written a moment ago even if the event of that is still to come.
type ledger struct {
	decisions *placement.Decisions

	mutex    sync.Mutex
	versions map[types.NamespacedName]string
}

func newLedger() *ledger {
	return &ledger{decisions: placement.NewDecisions(), versions: map[types.NamespacedName]string{}}
}

// set notes an object unless a newer version of it is known.
func (l *ledger) set(object *clusterv1beta1.PlacementDecision) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	if older(object.ResourceVersion, l.versions[key]) {
		return
	}
	l.versions[key] = object.ResourceVersion
	l.decisions.Set(object)
}

// remove notes that an object, last seen in this version, is gone.
func (l *ledger) remove(object client.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	if older(object.GetResourceVersion(), l.versions[key]) {
		return
	}
	delete(l.versions, key)
	l.decisions.Delete(key.Namespace, key.Name)
}

// older tells whether a version precedes a known one; versions that can't be compared
// don't.
func older(version, known string) bool {
	if known == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order < 0
}

// handler keeps the ledger and queues the Placements of the objects.
func (l *ledger) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { l.seen(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			enqueue(e.ObjectOld, q)
			l.seen(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			l.remove(e.Object)
			enqueue(e.Object, q)
		},
	}
}

func (l *ledger) seen(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if decision, ok := object.(*clusterv1beta1.PlacementDecision); ok {
		l.set(decision)
		enqueue(object, q)
	}
}

// enqueue queues the Placement that a PlacementDecision belongs to by its label.
func enqueue(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if name := object.GetLabels()[clusterv1beta1.PlacementLabel]; name != "" {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}})
	}
}
