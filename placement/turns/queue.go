// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns implements the queue of controllers that serve many tenants.
//
//	controller.Options{NewQueue: turns.NewQueue}
//
// Namespaces take turns. The objects of a namespace keep their order of arrival. However many objects a tenant creates or
// changes, for each worker at most one of them is handled before the object of another namespace.
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

// order holds the waiting requests. They are unique, because the work queue removes duplicates.
type order struct {
	// turns are the namespaces with a waiting request, the next one first.
	turns []string
	// waiting maps a namespace to its requests.
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

// Pop removes the first request of the next namespace. It requires a waiting request.
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
