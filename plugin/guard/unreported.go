// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// After a failed attempt, the scheduler writes the reason to the pod. A gated pod makes no attempt, so it would get no
// condition and no event. So such a pod is queued once, for an attempt that is refused with the reason:
//
//   1. A gated pod without a condition is stored ([unreported.wait]). Most pods pass the gate soon, because their claims are
//      created or compiled meanwhile.
//   2. After reportDelay the pod is activated, and the gate lets it through ([unreported.passes]).
//   3. PreFilter refuses the pod, and the scheduler writes the condition. The pod is removed here ([unreported.done]).
//
// Each attempt writes a condition and an event, and the scheduler's API client allows some fifty requests a second. So the pods
// are queued one at a time, and namespaces take turns.

const (
	// reportDelay is the time after which a gated pod without a condition is queued. kube-controller-manager usually creates
	// the pod's claims earlier.
	reportDelay = 5 * time.Second
	// reportInterval is the minimum time between queueing two gated pods of the same namespace.
	reportInterval = 100 * time.Millisecond
	// reportIntervalOfAll is the minimum time between queueing two gated pods of any namespaces.
	reportIntervalOfAll = 50 * time.Millisecond
	// reportTimeout is how long the guard waits for the attempt of a pod that it queued. There is no attempt if the pod's claim
	// was deleted or allocated meanwhile.
	reportTimeout = time.Minute
)

// unreported holds gated pods whose conditions don't have the reason for their wait.
type unreported struct {
	byNamespace map[string]*unreportedOf
	pods        map[types.UID]*unreportedPod
	// next is the earliest time at which a pod of any namespace may be queued.
	next time.Time
}

// unreportedOf holds the pods of one namespace in the order of arrival.
type unreportedOf struct {
	order []*unreportedPod
	// compactAt is the length of order at which entries of removed pods are deleted from its middle.
	compactAt int
	// queued has the pods that were queued so that an attempt writes their condition.
	queued []*unreportedPod
	// next is the earliest time at which another pod of the namespace may be queued.
	next time.Time
}

type unreportedPod struct {
	entry
	// due is the time at which the pod is queued. If isQueued is true, due is the time at which the pod is dropped.
	due time.Time
	// isQueued is true after the pod was activated so that an attempt writes its condition.
	isQueued bool
}

// wait stores a gated pod unless its condition contains why. If why is empty, any condition will do.
func (t *unreported) wait(e entry, why string, now time.Time) {
	if t.pods[e.key] != nil || hasReason(e.pod, why) {
		return
	}
	if t.pods == nil {
		t.pods, t.byNamespace = map[types.UID]*unreportedPod{}, map[string]*unreportedOf{}
	}
	of := t.byNamespace[e.pod.Namespace]
	if of == nil {
		of = &unreportedOf{}
		t.byNamespace[e.pod.Namespace] = of
	}
	waits := &unreportedPod{entry: e.minimal(), due: now.Add(reportDelay)}
	t.pods[e.key] = waits
	of.order = append(of.order, waits)
	if len(of.order) > of.compactAt {
		of.order = slices.DeleteFunc(of.order, t.isGone)
		of.compactAt = 2*len(of.order) + 1<<10
	}
}

// isGone reports whether the entry was removed, or was replaced by an entry with the same key.
func (t *unreported) isGone(pod *unreportedPod) bool { return t.pods[pod.key] != pod }

// passes reports whether the gate must let the pod through so that an attempt writes its condition.
func (t *unreported) passes(key types.UID) bool {
	untold := t.pods[key]
	return untold != nil && untold.isQueued
}

// done removes a pod whose attempt has begun or was refused.
func (t *unreported) done(key types.UID) { delete(t.pods, key) }

// due returns the pod that must be queued now, if any. next is when due must be called again, zero for never. If pods of
// several namespaces are due, due chooses the namespace whose last pod was queued longest ago.
func (t *unreported) due(now time.Time) (queue []entry, next time.Time) {
	var turn *unreportedOf
	for namespace, of := range t.byNamespace {
		of.queued = t.skip(of.queued, func(pod *unreportedPod) bool { return !pod.due.After(now) })
		of.order = t.skip(of.order, func(*unreportedPod) bool { return false })
		switch {
		case len(of.order) > 0:
			at := later(of.order[0].due, of.next)
			next = earlier(next, later(at, t.next))
			if !at.After(now) && (turn == nil || of.next.Before(turn.next)) {
				turn = of
			}
		case len(of.queued) == 0:
			delete(t.byNamespace, namespace)
		}
		if len(of.queued) > 0 {
			next = earlier(next, of.queued[0].due)
		}
	}
	if turn == nil || t.next.After(now) {
		return nil, next
	}
	first := turn.order[0]
	first.isQueued, first.due = true, now.Add(reportTimeout)
	turn.order, turn.queued = turn.order[1:], append(turn.queued, first)
	turn.next, t.next = now.Add(reportInterval), now.Add(reportIntervalOfAll)
	return []entry{first.entry}, t.next
}

// skip removes pods from the front of a list while the first pod is gone or drop returns true for this pod.
func (t *unreported) skip(pods []*unreportedPod, drop func(*unreportedPod) bool) []*unreportedPod {
	for len(pods) > 0 && (t.isGone(pods[0]) || drop(pods[0])) {
		if !t.isGone(pods[0]) {
			delete(t.pods, pods[0].key)
		}
		pods[0] = nil
		pods = pods[1:]
	}
	return pods
}

// MustReport records that a pod is gated for the reason why. It returns true if the pod must be queued anyway, for an attempt
// that is refused and writes the reason to the pod. If it returns false, the guard activates the pod after a while, unless a
// condition of the pod already contains why. The caller holds the lock of the scheduling queue, so MustReport takes only
// microseconds.
func (g *Guard) MustReport(pod *v1.Pod, why string, activate func(*v1.Pod)) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	e := newEntry(pod, activate)
	if g.unreported.passes(e.key) {
		return true
	}
	now := g.clock.Now()
	g.unreported.wait(e, why, now)
	g.lookAt(now.Add(reportDelay), now)
	return false
}

// Refused implements [Turns]. If the program calls [Guard.Failed] after each attempt, Refused is not needed.
func (g *Guard) Refused(pod *v1.Pod) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.unreported.done(keyOf(pod))
}
