// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The scheduler writes why a pod waits when an attempt has failed. A pod that is gated makes no attempt, and would have no
// condition and no event. So the pod is queued once after a while, for an attempt that is refused with the reason:
//
//  1. A pod that is gated is noted, unless it has a condition already ([telling.wait]). Most pods are not gated any more
//     before their time comes, because their claims are made, or compiled.
//  2. When its time has come, the pod is activated, and passes the gate ([telling.passes]).
//  3. The attempt removes the pod ([telling.done]).
//
// Each attempt writes a condition and an event, and the API client of the scheduler allows some fifty requests a second. So
// the pods are queued one after the other, in turns of namespaces.

const (
	// untoldPatience is the time that a pod waits without a condition. kube-controller-manager makes claims within it.
	untoldPatience = 5 * time.Second
	// tellInterval is the time between two pods of a namespace that are queued to be told.
	tellInterval = 100 * time.Millisecond
	// tellIntervalOfAll is the time between two pods of all namespaces.
	tellIntervalOfAll = 50 * time.Millisecond
	// tellTimeout is the time after which a pod that was queued to be told is forgotten: its claim is gone, or has got devices.
	tellTimeout = time.Minute
)

// telling has the pods that wait and have no condition that says why.
type telling struct {
	byNamespace map[string]*untoldOf
	pods        map[types.UID]*untoldPod
	// next is the time before which no other pod is queued.
	next time.Time
}

// untoldOf has the pods of a namespace, in the order in which they came.
type untoldOf struct {
	order []*untoldPod
	// compactAt is the length at which pods that are gone are removed from the middle of the order.
	compactAt int
	// told are the pods that were queued.
	told []*untoldPod
	// next is the time before which no other pod is queued.
	next time.Time
}

type untoldPod struct {
	refused
	key types.UID
	// due is when it is queued, and then when it is forgotten.
	due time.Time
	// isQueued: its attempt is to be refused with the reason.
	isQueued bool
}

// wait adds a pod that has no condition yet. why is what the condition would say, "" for anything.
func (t *telling) wait(pod *v1.Pod, why string, activate func(*v1.Pod), now time.Time) {
	key := keyOf(pod)
	if t.pods[key] != nil || isTold(pod, why) {
		return
	}
	if t.pods == nil {
		t.pods, t.byNamespace = map[types.UID]*untoldPod{}, map[string]*untoldOf{}
	}
	of := t.byNamespace[pod.Namespace]
	if of == nil {
		of = &untoldOf{}
		t.byNamespace[pod.Namespace] = of
	}
	waits := &untoldPod{refused: newRefused(Request{Pod: pod, Activate: activate}), key: key, due: now.Add(untoldPatience)}
	t.pods[key] = waits
	of.order = append(of.order, waits)
	if len(of.order) > of.compactAt {
		of.order = slices.DeleteFunc(of.order, t.isGone)
		of.compactAt = 2*len(of.order) + 1<<10
	}
}

// isTold reports whether the pod has a condition that says why it waits. A condition that names scheduling gates was written
// before they were removed. The condition of a pod of a group is about the group, so any reason counts.
func isTold(pod *v1.Pod, why string) bool {
	if pod.Spec.SchedulingGroup != nil {
		why = ""
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Reason != v1.PodReasonSchedulingGated && strings.Contains(c.Message, why)
	})
}

// isGone reports whether a pod was removed, or is another one of the same group.
func (t *telling) isGone(pod *untoldPod) bool { return t.pods[pod.key] != pod }

// passes reports whether a pod is to be told now.
func (t *telling) passes(pod *v1.Pod) bool {
	if len(t.pods) == 0 {
		return false
	}
	untold := t.pods[keyOf(pod)]
	return untold != nil && untold.isQueued
}

// done removes a pod whose attempt was begun or refused.
func (t *telling) done(pod *v1.Pod) {
	if len(t.pods) > 0 {
		delete(t.pods, keyOf(pod))
	}
}

// due returns the pod that is queued now to be told, if there is one, and when the next one is, zero for never. Of the
// namespaces with a pod whose time has come, the one that waits longest has its turn.
func (t *telling) due(now time.Time) (queue []refused, next time.Time) {
	var turn *untoldOf
	for namespace, of := range t.byNamespace {
		of.told = t.skip(of.told, func(pod *untoldPod) bool { return !pod.due.After(now) })
		of.order = t.skip(of.order, func(*untoldPod) bool { return false })
		switch {
		case len(of.order) > 0:
			at := later(of.order[0].due, of.next)
			next = earlier(next, later(at, t.next))
			if !at.After(now) && (turn == nil || of.next.Before(turn.next)) {
				turn = of
			}
		case len(of.told) == 0:
			delete(t.byNamespace, namespace)
		}
		if len(of.told) > 0 {
			next = earlier(next, of.told[0].due)
		}
	}
	if turn == nil || t.next.After(now) {
		return nil, next
	}
	first := turn.order[0]
	first.isQueued, first.due = true, now.Add(tellTimeout)
	turn.order, turn.told = turn.order[1:], append(turn.told, first)
	turn.next, t.next = now.Add(tellInterval), now.Add(tellIntervalOfAll)
	return []refused{first.refused}, t.next
}

// skip drops the first pods of a list that are gone, or for which drop is true.
func (t *telling) skip(pods []*untoldPod, drop func(*untoldPod) bool) []*untoldPod {
	for len(pods) > 0 && (t.isGone(pods[0]) || drop(pods[0])) {
		if !t.isGone(pods[0]) {
			delete(t.pods, pods[0].key)
		}
		pods[0] = nil
		pods = pods[1:]
	}
	return pods
}

// Tell notes that a pod is gated. It reports whether the pod is to be queued nevertheless, so that an attempt which is
// refused writes why. Until then the pod is activated after a while, unless it has a condition that contains why. Tell is
// called while the scheduling queue is locked, and takes microseconds.
func (g *Guard) Tell(pod *v1.Pod, why string, activate func(*v1.Pod)) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.telling.passes(pod) {
		return true
	}
	now := g.clock.Now()
	g.telling.wait(pod, why, activate, now)
	g.lookAt(now.Add(untoldPatience), now)
	return false
}

// Told notes that an attempt to schedule a pod is refused before [Guard.Admit] is called. The attempt writes why the pod waits.
func (g *Guard) Told(pod *v1.Pod) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.telling.done(pod)
}
