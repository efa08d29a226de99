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

// After a failed attempt, the scheduler writes to the pod why it waits. A gated pod makes no attempt, so it would get no
// condition and no event. So such a pod is queued once, for an attempt that is refused with the reason:
//
//   1. A gated pod without a condition is stored ([telling.wait]). Most pods pass the gate soon, because their claims are created or
//      compiled meanwhile.
//   2. After untoldPatience the pod is activated and passes the gate ([telling.passes]).
//   3. The attempt removes the pod ([telling.done]).
//
// Each attempt writes a condition and an event, and the scheduler's API client allows some fifty requests a second. So the pods
// are queued one at a time, in turns of namespaces.

const (
	// untoldPatience is the time that a gated pod waits without a condition. kube-controller-manager creates claims sooner.
	untoldPatience = 5 * time.Second
	// tellInterval is the time after which the next pod of the same namespace may be queued to get its condition.
	tellInterval = 100 * time.Millisecond
	// tellIntervalOfAll is the time after which the next pod of any namespace may be queued to get its condition.
	tellIntervalOfAll = 50 * time.Millisecond
	// tellTimeout is the time after which a queued pod without an attempt is dropped, because its claim was deleted or allocated.
	tellTimeout = time.Minute
)

// telling holds gated pods without a condition that has the reason why they wait.
type telling struct {
	byNamespace map[string]*untoldOf
	pods        map[types.UID]*untoldPod
	// next is the earliest time to queue another pod.
	next time.Time
}

// untoldOf holds the pods of a namespace in the order of arrival.
type untoldOf struct {
	order []*untoldPod
	// compactAt is the length at which removed pods are deleted from the middle of the order.
	compactAt int
	// told are the pods that were queued to get their condition.
	told []*untoldPod
	// next is the earliest time to queue another pod.
	next time.Time
}

type untoldPod struct {
	entry
	// due is the time at which the pod is queued, and after that the time at which it is dropped.
	due time.Time
	// isQueued is true if the pod was activated for an attempt that is refused with the reason.
	isQueued bool
}

// wait adds a pod unless it has a condition that contains why. An empty why matches any condition.
func (t *telling) wait(e entry, why string, now time.Time) {
	if t.pods[e.key] != nil || isTold(e.pod, why) {
		return
	}
	if t.pods == nil {
		t.pods, t.byNamespace = map[types.UID]*untoldPod{}, map[string]*untoldOf{}
	}
	of := t.byNamespace[e.pod.Namespace]
	if of == nil {
		of = &untoldOf{}
		t.byNamespace[e.pod.Namespace] = of
	}
	waits := &untoldPod{entry: e.kept(), due: now.Add(untoldPatience)}
	t.pods[e.key] = waits
	of.order = append(of.order, waits)
	if len(of.order) > of.compactAt {
		of.order = slices.DeleteFunc(of.order, t.isGone)
		of.compactAt = 2*len(of.order) + 1<<10
	}
}

// isTold reports whether a condition of the pod contains why, the reason for the wait. A condition about scheduling gates is
// outdated, because the gates were removed. The condition of a grouped pod is about the group, so any reason counts.
func isTold(pod *v1.Pod, why string) bool {
	if pod.Spec.SchedulingGroup != nil {
		why = ""
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Reason != v1.PodReasonSchedulingGated && strings.Contains(c.Message, why)
	})
}

// isGone reports whether a pod was removed or replaced by another pod of its group.
func (t *telling) isGone(pod *untoldPod) bool { return t.pods[pod.key] != pod }

// passes reports whether a pod must pass the gate now.
func (t *telling) passes(key types.UID) bool {
	untold := t.pods[key]
	return untold != nil && untold.isQueued
}

// done removes a pod whose attempt started or was refused.
func (t *telling) done(key types.UID) { delete(t.pods, key) }

// due returns the pod to queue now, if any. next is the time at which the next pod may be queued, zero for never. Among
// namespaces with a due pod, due chooses the namespace that was served least recently.
func (t *telling) due(now time.Time) (queue []entry, next time.Time) {
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
	return []entry{first.entry}, t.next
}

// skip removes pods from the front of a list while they are gone or drop is true.
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

// Tell records that a pod is gated because of why. It returns true if the pod must be queued anyway, for an attempt that is
// refused and writes the reason to the pod. If it returns false, the guard activates the pod after a while, unless a condition
// of the pod contains why. Tell runs under the lock of the scheduling queue and takes microseconds.
func (g *Guard) Tell(pod *v1.Pod, why string, activate func(*v1.Pod)) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	e := newEntry(pod, activate)
	if g.telling.passes(e.key) {
		return true
	}
	now := g.clock.Now()
	g.telling.wait(e, why, now)
	g.lookAt(now.Add(untoldPatience), now)
	return false
}

// Told records that an attempt of the pod was refused before [Guard.Admit] was called. Such an attempt writes the reason.
func (g *Guard) Told(pod *v1.Pod) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.telling.done(keyOf(pod))
}
