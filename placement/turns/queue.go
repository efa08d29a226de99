// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns implements the queue of controllers that serve many tenants.
//
//	controller.Options{NewQueue: turns.NewQueue}
//
// Namespaces take turns. Objects of the same namespace are handled in the order of arrival. However many objects a tenant
// creates or changes, an object of another namespace waits for at most one object of this tenant for each worker.
package turns

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue returns a queue that serves namespaces in turns. It has the signature of NewQueue in a controller's options.
func NewQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: newOrder()})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: ordered,
		}),
	})
}

// order holds the waiting requests. No request is in order twice, because the work queue removes duplicates.
type order struct {
	// turns has the namespaces with waiting requests, in the order of their turns.
	turns []string
	// waiting maps a namespace to its requests in the order of arrival.
	waiting map[string][]reconcile.Request
	length  int
}

var _ workqueue.Queue[reconcile.Request] = (*order)(nil)

func newOrder() *order { return &order{waiting: map[string][]reconcile.Request{}} }

// Touch does nothing: a waiting request keeps its position.
func (o *order) Touch(reconcile.Request) {}

// Push adds a request that is not waiting yet.
func (o *order) Push(item reconcile.Request) {
	if len(o.waiting[item.Namespace]) == 0 {
		o.turns = append(o.turns, item.Namespace)
	}
	o.waiting[item.Namespace] = append(o.waiting[item.Namespace], item)
	o.length++
}

// Len returns the number of waiting requests.
func (o *order) Len() int { return o.length }

// Pop removes and returns the first request of the namespace whose turn it is. At least one request must be waiting.
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
