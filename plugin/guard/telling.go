// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
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
	// tellTimeout is the time after which a pod that was queued to be told is forgotten: its claim is gone, or has got devices.
	tellTimeout = time.Minute
	// maxUntold bounds the pods of a namespace that are known to have no condition.
	maxUntold = 1 << 13
)

// telling has the pods that wait and have no condition that says why.
type telling struct {
	byNamespace map[string]*untoldOf
	pods        map[types.UID]*untoldPod
}

// untoldOf has the pods of a namespace, in the order in which they came.
type untoldOf struct {
	order []*untoldPod
	// told are the pods that were queued.
	told []*untoldPod
	// next is the time before which no other pod is queued.
	next time.Time
}

type untoldPod struct {
	refused
	// due is when it is queued, and then when it is forgotten.
	due time.Time
	// isQueued: its attempt is to be refused with the reason.
	isQueued bool
}

// wait adds a pod that has no condition yet.
func (t *telling) wait(r Request, now time.Time) {
	if t.pods[r.Pod.UID] != nil || isTold(r.Pod) {
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
	if len(of.order)+len(of.told) >= maxUntold {
		return
	}
	waits := &untoldPod{refused: newRefused(r), due: now.Add(untoldPatience)}
	t.pods[r.Pod.UID] = waits
	of.order = append(of.order, waits)
}

// isTold reports whether the pod has a condition that says why it waits. One that names scheduling gates is of before they
// were removed.
func isTold(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Reason != v1.PodReasonSchedulingGated
	})
}

// passes reports whether a pod is to be told now.
func (t *telling) passes(pod types.UID) bool { return t.pods[pod] != nil && t.pods[pod].isQueued }

// done forgets a pod whose attempt was begun or refused.
func (t *telling) done(pod types.UID) { delete(t.pods, pod) }

// due returns the pods that are queued now to be told, and when there is the next one, zero for never.
func (t *telling) due(now time.Time) (queue []refused, next time.Time) {
	for namespace, of := range t.byNamespace {
		of.told = t.skip(of.told, func(pod *untoldPod) bool { return !pod.due.After(now) })
		of.order = t.skip(of.order, func(*untoldPod) bool { return false })
		if len(of.order) > 0 {
			first := of.order[0]
			at := first.due
			if at.Before(of.next) {
				at = of.next
			}
			if !at.After(now) {
				first.isQueued, first.due, of.next = true, now.Add(tellTimeout), now.Add(tellInterval)
				queue = append(queue, first.refused)
				of.order, of.told = of.order[1:], append(of.told, first)
				at = of.next
			}
			next = earlier(next, at)
		}
		if len(of.order) == 0 && len(of.told) == 0 {
			delete(t.byNamespace, namespace)
		} else if len(of.told) > 0 {
			next = earlier(next, of.told[0].due)
		}
	}
	return queue, next
}

// skip drops the first pods of a list that are known no more, or for which drop is true.
func (t *telling) skip(pods []*untoldPod, drop func(*untoldPod) bool) []*untoldPod {
	for len(pods) > 0 && (t.pods[pods[0].pod.UID] != pods[0] || drop(pods[0])) {
		if t.pods[pods[0].pod.UID] == pods[0] {
			t.done(pods[0].pod.UID)
		}
		pods[0] = nil
		pods = pods[1:]
	}
	return pods
}
