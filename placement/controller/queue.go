// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fairQueue is what waits for a worker. Namespaces have their turns one after another,
// and the Placements of one in the order in which they came: however many somebody
// makes, or changes, those of another namespace wait for one of them for each worker.
type fairQueue struct {
	// turns are the namespaces with something that waits, the next one first.
	turns []string
	// waiting is by namespace.
	waiting map[string][]reconcile.Request
	length  int
}

var _ workqueue.Queue[reconcile.Request] = (*fairQueue)(nil)

func newFairQueue() *fairQueue { return &fairQueue{waiting: map[string][]reconcile.Request{}} }

// Touch does nothing: what waits already does not move.
func (q *fairQueue) Touch(reconcile.Request) {}

// Push adds what does not wait yet.
func (q *fairQueue) Push(item reconcile.Request) {
	if len(q.waiting[item.Namespace]) == 0 {
		q.turns = append(q.turns, item.Namespace)
	}
	q.waiting[item.Namespace] = append(q.waiting[item.Namespace], item)
	q.length++
}

// Len is how many wait.
func (q *fairQueue) Len() int { return q.length }

// Pop takes the first one of the namespace whose turn it is. It is called only if one
// waits.
func (q *fairQueue) Pop() reconcile.Request {
	namespace := q.turns[0]
	q.turns[0] = ""
	q.turns = q.turns[1:]
	items := q.waiting[namespace]
	item := items[0]
	items[0] = reconcile.Request{}
	if items = items[1:]; len(items) > 0 {
		q.waiting[namespace] = items
		q.turns = append(q.turns, namespace)
	} else {
		delete(q.waiting, namespace)
	}
	q.length--
	return item
}

// newQueue makes the queue of a controller.
func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	fair := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: newFairQueue()})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: fair,
		}),
	})
}
