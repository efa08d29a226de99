// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns has the queue of controllers that serve many tenants.
//
//	controller.Options{NewQueue: turns.NewQueue}
//
// Namespaces take turns, and the objects of a namespace keep the order in which they came. However many objects a tenant
// makes or changes, an object of another namespace waits for at most one of them for each worker.
package turns

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue returns the queue of a controller.
func NewQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: newOrder()})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: ordered,
		}),
	})
}

// order has the requests that wait for a worker, without duplicates: the work queue sees to that.
type order struct {
	// turns are the namespaces with a request that waits, the next one first.
	turns []string
	// waiting are the requests by namespace.
	waiting map[string][]reconcile.Request
	length  int
}

var _ workqueue.Queue[reconcile.Request] = (*order)(nil)

func newOrder() *order { return &order{waiting: map[string][]reconcile.Request{}} }

// Touch does nothing: a request that waits keeps its place.
func (o *order) Touch(reconcile.Request) {}

// Push adds a request that does not wait yet.
func (o *order) Push(item reconcile.Request) {
	if len(o.waiting[item.Namespace]) == 0 {
		o.turns = append(o.turns, item.Namespace)
	}
	o.waiting[item.Namespace] = append(o.waiting[item.Namespace], item)
	o.length++
}

// Len returns the number of requests that wait.
func (o *order) Len() int { return o.length }

// Pop removes the first request of the namespace whose turn it is. One must wait.
func (o *order) Pop() reconcile.Request {
	namespace := o.turns[0]
	o.turns[0] = ""
	o.turns = o.turns[1:]
	items := o.waiting[namespace]
	item := items[0]
	items[0] = reconcile.Request{}
	if items = items[1:]; len(items) > 0 {
		o.waiting[namespace] = items
		o.turns = append(o.turns, namespace)
	} else {
		delete(o.waiting, namespace)
	}
	o.length--
	return item
}
