// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"container/heap"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// A pod that may not be tried now waits in the line of its namespace, outside of the queue of the pods that could be tried.
//
//  1. A few pods of a namespace are queued at a time ([Guard.Gate]). The next ones join its line. A pod whose attempt is
//     refused for the namespace's share joins the line, too ([Guard.Admit]).
//  2. When the attempt of a queued pod has ended, or the pod is gone, the first pod of the line is queued, if the share
//     allows it.
//  3. Of a namespace that has used up its share a pod is queued only when no other namespace waits. Its attempt is not
//     refused then: it has a turn.
//
// A pod whose attempt ended with an error backs off in the scheduling queue. An activated pod does not, so the pod joins the
// line when its back-off is over ([Guard.Failed]). Otherwise it would be tried again at once, forever.
//
// So a pod that waits makes no attempts, and writes nothing. Pods that are gone leave the line ([Guard.Forget]), so that there
// are never more in line than in the cluster.

const (
	// maxQueued is the number of pods of a namespace that are queued at a time while it has time left. More would be refused
	// together when the time is used up.
	maxQueued = 8
	// maxQueuedWithoutShare is that number for a namespace that has used up its share: one pod is tried, and the next one is
	// there when that attempt ends.
	maxQueuedWithoutShare = 2
)

// lines has the lines of all namespaces.
type lines struct {
	byNamespace map[string]*line
	// joined counts pods that joined a line, for their order.
	joined int
	// nextCheck is the time before which queued pods are not looked for in the queue again.
	nextCheck time.Time
	errors    attemptErrors
}

// line has the pods and groups of one namespace, those of the highest priority first. Of the same priority, pods that were
// never tried and pods that were take turns, each in the order in which they came: many pods that are tried again and again
// don't keep a new one waiting, nor do many new ones keep them waiting.
type line struct {
	order []*inLine
	// tags are the greatest tags that pods got which were never tried, and pods which were. virtualTime is the greatest
	// tag of a pod that was queued. This is start-time fair queueing with two flows.
	tags        [2]int
	virtualTime int
	// resting are the pods that back off, and rested is the time before which none of them is in order.
	resting map[types.UID]*inLine
	rested  time.Time
	// pods are those in order, and those that back off.
	pods map[types.UID]*inLine
	// queued has the pods that were queued and are still to be tried.
	queued map[types.UID]*queued
}

// inLine is a pod in a line.
type inLine struct {
	refused
	// tried: the pod has a condition that says why it has no node.
	tried bool
	// tag orders the pods of a priority, and joined those of the same tag. index is the place in the heap.
	tag, joined, index int
	// due is the time at which the pod has backed off.
	due time.Time
}

// queued is a pod in the queue.
type queued struct {
	// checked is the last time at which the pod was queued, or seen in the queue.
	checked time.Time
	// hasTurn: its attempt is not refused.
	hasTurn bool
}

// keyOf identifies what the scheduling queue has at a time: a pod, or a group, by each of its pods.
func keyOf(pod *v1.Pod) types.UID {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return types.UID(pod.Namespace + "/" + *group.PodGroupName)
	}
	return pod.UID
}

func (l *lines) of(namespace string) *line {
	if l.byNamespace == nil {
		l.byNamespace = map[string]*line{}
	}
	of := l.byNamespace[namespace]
	if of == nil {
		of = &line{pods: map[types.UID]*inLine{}, resting: map[types.UID]*inLine{}, queued: map[types.UID]*queued{}}
		l.byNamespace[namespace] = of
	}
	return of
}

// pass notes that a pod is about to be queued, and returns false if it has to wait in line. most is the number of pods of
// the namespace that are queued at a time.
func (l *lines) pass(r Request, most int, now time.Time) bool {
	of := l.of(r.Pod.Namespace)
	if known := of.queued[keyOf(r.Pod)]; known != nil {
		known.checked = now
		return true
	}
	before := len(of.order)
	if l.errors.next(r.Pod).After(now) {
		before = len(of.pods)
	}
	if before == 0 && len(of.queued) < most {
		of.queued[keyOf(r.Pod)] = &queued{checked: now}
		return true
	}
	l.join(r, now)
	return false
}

// hasTurn reports whether the attempt of a pod is not refused.
func (l *lines) hasTurn(pod *v1.Pod) bool {
	of := l.byNamespace[pod.Namespace]
	return of != nil && of.queued[keyOf(pod)] != nil && of.queued[keyOf(pod)].hasTurn
}

// join adds a pod to the line of its namespace unless it is there already.
func (l *lines) join(r Request, now time.Time) {
	of := l.of(r.Pod.Namespace)
	if known := of.pods[keyOf(r.Pod)]; known != nil {
		known.activate = r.Activate
		return
	}
	l.joined++
	waits := &inLine{refused: newRefused(r), joined: l.joined, tried: isTold(r.Pod, ""), due: l.errors.next(r.Pod)}
	of.pods[keyOf(r.Pod)] = waits
	if waits.due.After(now) {
		of.resting[keyOf(r.Pod)] = waits
		of.rested = earlier(of.rested, waits.due)
		return
	}
	of.add(waits)
}

// add adds a pod to the order. Its tag follows that of the last pod of the same flow, and the virtual time.
func (of *line) add(waits *inLine) {
	tag := &of.tags[0]
	if waits.tried {
		tag = &of.tags[1]
	}
	*tag = max(*tag, of.virtualTime) + 1
	waits.tag = *tag
	heap.Push(of, waits)
}

// rest has the pods that have backed off join the others.
func (of *line) rest(now time.Time) {
	if of.rested.After(now) {
		return
	}
	of.rested = time.Time{}
	for key, waits := range of.resting {
		if waits.due.After(now) {
			of.rested = earlier(of.rested, waits.due)
			continue
		}
		delete(of.resting, key)
		of.add(waits)
	}
}

// leave removes a pod that is being tried, or is gone.
func (l *lines) leave(pod *v1.Pod) {
	of := l.byNamespace[pod.Namespace]
	if of == nil {
		return
	}
	key := keyOf(pod)
	delete(of.queued, key)
	if waits := of.pods[key]; waits != nil {
		if of.resting[key] == nil {
			heap.Remove(of, waits.index)
		}
		delete(of.resting, key)
		delete(of.pods, key)
	}
	l.tidy(pod.Namespace, of)
}

// wait reports whether a pod is in line.
func (l *lines) wait() bool {
	for _, of := range l.byNamespace {
		if len(of.order) > 0 {
			return true
		}
	}
	return false
}

func (l *lines) tidy(namespace string, of *line) {
	if len(of.pods) == 0 && len(of.queued) == 0 {
		delete(l.byNamespace, namespace)
	}
}

// share is what the share of a namespace allows.
type share struct {
	// most is the number of pods that are queued at a time.
	most int
	// isThrottled: pods of other namespaces wait, and this one has used up its share.
	isThrottled bool
}

// check removes queued pods that are not in the queue any more, because another plugin has them wait, or because they are
// being tried.
func (l *lines) check(now time.Time, inQueue func() []*v1.Pod) {
	isOld := func(_ types.UID, pod *queued) bool { return now.Sub(pod.checked) >= pollInterval }
	if now.Before(l.nextCheck) || !l.anyQueued(isOld) {
		return
	}
	pods := inQueue()
	for _, pod := range pods {
		if of := l.byNamespace[pod.Namespace]; of != nil && of.queued[keyOf(pod)] != nil {
			of.queued[keyOf(pod)].checked = now
		}
	}
	for _, of := range l.byNamespace {
		maps.DeleteFunc(of.queued, isOld)
	}
	l.nextCheck = now.Add(pause(len(pods)))
}

func (l *lines) anyQueued(is func(types.UID, *queued) bool) bool {
	for _, of := range l.byNamespace {
		for uid, pod := range of.queued {
			if is(uid, pod) {
				return true
			}
		}
	}
	return false
}

// next queues the first pods of each line, as the shares allow it. inQueue returns the pods in the queue.
func (l *lines) next(now time.Time, shareOf func(namespace string) share, inQueue func() []*v1.Pod) (queue []refused) {
	l.check(now, inQueue)
	for namespace, of := range l.byNamespace {
		of.rest(now)
		if len(of.order) > 0 {
			allowed := shareOf(namespace)
			for !allowed.isThrottled && len(of.order) > 0 && len(of.queued) < allowed.most {
				first := heap.Pop(of).(*inLine)
				of.virtualTime = max(of.virtualTime, first.tag)
				delete(of.pods, keyOf(first.pod))
				// The first of those without a share has a turn.
				of.queued[keyOf(first.pod)] = &queued{checked: now, hasTurn: allowed.most == maxQueuedWithoutShare && len(of.queued) == 0}
				queue = append(queue, first.refused)
			}
		}
		l.tidy(namespace, of)
	}
	return queue
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (of *line) Len() int { return len(of.order) }

// Less compares priorities, then tags, and then the order in which the pods came.
func (of *line) Less(i, j int) bool {
	a, b := of.order[i], of.order[j]
	if p, q := corev1helpers.PodPriority(a.pod), corev1helpers.PodPriority(b.pod); p != q {
		return p > q
	}
	return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.joined, b.joined)) < 0
}

// Swap keeps the index of each pod.
func (of *line) Swap(i, j int) {
	of.order[i], of.order[j] = of.order[j], of.order[i]
	of.order[i].index, of.order[j].index = i, j
}

// Push adds a pod at the end.
func (of *line) Push(x any) {
	waits := x.(*inLine)
	waits.index = len(of.order)
	of.order = append(of.order, waits)
}

// Pop removes the last pod.
func (of *line) Pop() any {
	last := of.order[len(of.order)-1]
	of.order[len(of.order)-1] = nil
	of.order = of.order[:len(of.order)-1]
	return last
}
