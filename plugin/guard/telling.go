// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The scheduler writes why a pod waits when an attempt has failed. A pod that waits outside of the queue before its first
// attempt would have no condition and no event. So it is queued once after a while, for an attempt that is refused with the
// reason. Many such pods are queued one after the other, since each writes a condition and an event.

const (
	// untoldPatience is the time that a pod waits without a condition.
	untoldPatience = 5 * time.Second
	// tellInterval is the time between two pods of a namespace that are queued to be told.
	tellInterval = 100 * time.Millisecond
	// maxUntold bounds the pods that are known to have no condition.
	maxUntold = 1 << 16
)

// telling has the pods that wait and have no condition that says why.
type telling struct {
	byNamespace map[string]*untoldOf
	pods        map[types.UID]*untoldPod
}

// untoldOf has the pods of a namespace, in the order in which they came.
type untoldOf struct {
	order []*untoldPod
	// next is the time before which no other pod is queued.
	next time.Time
}

type untoldPod struct {
	refused
	due time.Time
	// isQueued: its attempt is to be refused with the reason.
	isQueued bool
}

// wait adds a pod that has no condition yet.
func (t *telling) wait(r Request, now time.Time) {
	if t.pods[r.Pod.UID] != nil || len(t.pods) >= maxUntold || isTold(r.Pod) {
		return
	}
	if t.pods == nil {
		t.pods, t.byNamespace = map[types.UID]*untoldPod{}, map[string]*untoldOf{}
	}
	of := t.byNamespace[r.Pod.Namespace]
	if of == nil {
		of = &untoldOf{}
		t.byNamespace[r.Pod.Namespace] = of
	}
	waits := &untoldPod{refused: newRefused(r), due: now.Add(untoldPatience)}
	t.pods[r.Pod.UID] = waits
	of.order = append(of.order, waits)
}

// isTold reports whether the pod has a condition that says why it waits.
func isTold(pod *v1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == v1.PodScheduled {
			return true
		}
	}
	return false
}

// passes reports whether a pod is to be told now.
func (t *telling) passes(pod types.UID) bool { return t.pods[pod] != nil && t.pods[pod].isQueued }

// done forgets a pod whose attempt was begun or refused.
func (t *telling) done(pod types.UID) { delete(t.pods, pod) }

// due returns the pods that are queued now to be told, and when there is the next one, zero for never.
func (t *telling) due(now time.Time) (queue []refused, next time.Time) {
	for namespace, of := range t.byNamespace {
		for len(of.order) > 0 {
			first := of.order[0]
			if t.pods[first.pod.UID] == first && !first.isGone(first.pod) {
				at := first.due
				if at.Before(of.next) {
					at = of.next
				}
				if at.After(now) {
					next = earlier(next, at)
					break
				}
				first.isQueued, of.next = true, now.Add(tellInterval)
				queue = append(queue, first.refused)
			} else if t.pods[first.pod.UID] == first {
				t.done(first.pod.UID)
			}
			of.order[0] = nil
			of.order = of.order[1:]
		}
		if len(of.order) == 0 && !of.next.After(now) {
			delete(t.byNamespace, namespace)
		}
	}
	return queue, next
}
