// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// A pod that may not be tried now waits in the line of its namespace, outside of the active queue.
//
//   1. Only a few pods of a namespace are queued at a time ([Guard.Gate]); others join the line. A pod whose attempt is refused
//      for the namespace's share joins the line, too ([Guard.Admit]).
//   2. When the attempt of a queued pod has ended, or the pod is deleted, the first pod of the line is queued. If the namespace has
//      used up its share, this may be delayed.
//   3. If a namespace has used up its share, a pod is queued only when no other namespace waits. Its attempt is then not refused.
//
// After an error, a pod in the scheduling queue backs off, but an activated pod does not. So the pod joins the line only when its
// back-off is over ([Guard.Failed]). Otherwise it would be retried at once, forever.
//
// So a waiting pod makes no attempts and causes no writes. Deleted pods leave the line ([Guard.Forget]), so a line never has more
// pods than the cluster.

const (
	// maxQueued limits the queued pods of a namespace with remaining share. Additional pods would be refused together once the share
	// is used up.
	maxQueued = 8
	// maxQueuedWithoutShare is the limit for a namespace that has used up its share. One pod is tried, and the next is ready when
	// that attempt ends.
	maxQueuedWithoutShare = 2
)

// entry is an entry of the scheduling queue: a pod, or a group with one of its pods.
type entry struct {
	pod *v1.Pod
	// key is the UID of the pod, or the namespace and the name of the group.
	key types.UID
	// activate moves the pod to the active queue.
	activate func(*v1.Pod)
}

func newEntry(pod *v1.Pod, activate func(*v1.Pod)) entry { return entry{pod, keyOf(pod), activate} }

func keyOf(pod *v1.Pod) types.UID {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return types.UID(pod.Namespace + "/" + *group.PodGroupName)
	}
	return pod.UID
}

// minimal returns the entry with a copy of the pod that has only the fields that the queue needs, and the priority.
func (e entry) minimal() entry {
	e.pod = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.pod.Namespace, Name: e.pod.Name, UID: e.pod.UID},
		Spec:       v1.PodSpec{SchedulingGroup: e.pod.Spec.SchedulingGroup, Priority: e.pod.Spec.Priority},
	}
	return e
}

// hasReason reports whether a condition of the pod contains why, the reason for the wait. A condition about scheduling gates is
// outdated, because the gates were removed. The condition of a grouped pod is about the group, so any reason counts.
func hasReason(pod *v1.Pod, why string) bool {
	if pod.Spec.SchedulingGroup != nil {
		why = ""
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Reason != v1.PodReasonSchedulingGated && strings.Contains(c.Message, why)
	})
}

// lines holds the lines of all namespaces.
type lines struct {
	byNamespace map[string]*line
	// joined counts pods that joined a line, for their order.
	joined int
	// nextCheck is the earliest time at which check lists the scheduling queue again.
	nextCheck time.Time
	errors    attemptErrors
}

// line holds the waiting pods and groups of one namespace, by priority. Within a priority, new pods and retried pods take turns,
// each in the order of arrival. So many retried pods don't delay a new pod, and many new pods don't delay retried ones.
type line struct {
	order []*inLine
	// The order is start-time fair queueing with two flows: pods that were never tried, and tried pods. tags holds the greatest
	// tag of each flow, in this order. virtualTime is the greatest tag of a queued pod.
	tags        [2]int
	virtualTime int
	// backingOff are the pods that back off. The first of these back-offs ends at backOffEnds.
	backingOff  map[types.UID]*inLine
	backOffEnds time.Time
	// pods are the pods in order and in backingOff.
	pods map[types.UID]*inLine
	// queued has the queued pods that were not tried yet.
	queued map[types.UID]*queued
}

// inLine is a pod in a line.
type inLine struct {
	entry
	// tried is true if the pod has a condition with the reason why it has no node.
	tried bool
	// tag orders the pods of equal priority, joined the pods with equal tags. index is the position in the heap.
	tag, joined, index int
	// due is the end of the pod's back-off.
	due time.Time
}

// queued is a pod in the scheduling queue.
type queued struct {
	// checked is the last time at which the pod was queued or found in the queue.
	checked time.Time
	// hasTurn is true if the pod's attempt must not be refused.
	hasTurn bool
}

func (l *lines) of(namespace string) *line {
	if l.byNamespace == nil {
		l.byNamespace = map[string]*line{}
	}
	of := l.byNamespace[namespace]
	if of == nil {
		of = &line{pods: map[types.UID]*inLine{}, backingOff: map[types.UID]*inLine{}, queued: map[types.UID]*queued{}}
		l.byNamespace[namespace] = of
	}
	return of
}

// pass reports whether a pod may be queued now. If not, the pod joins the line. most limits the queued pods of the namespace.
func (l *lines) pass(e entry, most int, now time.Time) bool {
	of := l.of(e.pod.Namespace)
	if known := of.queued[e.key]; known != nil {
		known.checked = now
		return true
	}
	before := len(of.order)
	if l.errors.next(e.pod).After(now) {
		before = len(of.pods)
	}
	if before == 0 && len(of.queued) < most {
		of.queued[e.key] = &queued{checked: now}
		return true
	}
	l.join(e, now)
	return false
}

// hasTurn reports whether the attempt of a pod must not be refused.
func (l *lines) hasTurn(e entry) bool {
	of := l.byNamespace[e.pod.Namespace]
	return of != nil && of.queued[e.key] != nil && of.queued[e.key].hasTurn
}

// join adds a pod to the line of its namespace unless it is in the line already.
func (l *lines) join(e entry, now time.Time) {
	of := l.of(e.pod.Namespace)
	if known := of.pods[e.key]; known != nil {
		known.activate = e.activate
		return
	}
	l.joined++
	waits := &inLine{entry: e.minimal(), joined: l.joined, tried: hasReason(e.pod, ""), due: l.errors.next(e.pod)}
	of.pods[e.key] = waits
	if waits.due.After(now) {
		of.backingOff[e.key] = waits
		of.backOffEnds = earlier(of.backOffEnds, waits.due)
		return
	}
	of.add(waits)
}

// add adds a pod to the order. Its tag follows both the last tag of its flow and the virtual time.
func (of *line) add(waits *inLine) {
	tag := &of.tags[0]
	if waits.tried {
		tag = &of.tags[1]
	}
	*tag = max(*tag, of.virtualTime) + 1
	waits.tag = *tag
	heap.Push(of, waits)
}

// endBackOffs moves pods whose back-off has ended into the order.
func (of *line) endBackOffs(now time.Time) {
	if of.backOffEnds.After(now) {
		return
	}
	of.backOffEnds = time.Time{}
	for key, waits := range of.backingOff {
		if waits.due.After(now) {
			of.backOffEnds = earlier(of.backOffEnds, waits.due)
			continue
		}
		delete(of.backingOff, key)
		of.add(waits)
	}
}

// leave removes a pod that is being tried or is deleted.
func (l *lines) leave(e entry) {
	of := l.byNamespace[e.pod.Namespace]
	if of == nil {
		return
	}
	delete(of.queued, e.key)
	if waits := of.pods[e.key]; waits != nil {
		if of.backingOff[e.key] == nil {
			heap.Remove(of, waits.index)
		}
		delete(of.backingOff, e.key)
		delete(of.pods, e.key)
	}
	l.tidy(e.pod.Namespace, of)
}

// wait reports whether any pod is in a line.
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

// shareLimits holds the limits from the share of a namespace.
type shareLimits struct {
	// most limits the queued pods.
	most int
	// isThrottled is true if the namespace has used up its share and pods of other namespaces wait.
	isThrottled bool
}

// check removes queued pods that have left the queue, because another plugin gates them or an attempt has started.
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

// next queues the first pods of each line, within the shares. inQueue returns the pods in the queue.
func (l *lines) next(now time.Time, shareOf func(namespace string) shareLimits, inQueue func() []*v1.Pod) (queue []entry) {
	l.check(now, inQueue)
	for namespace, of := range l.byNamespace {
		of.endBackOffs(now)
		if len(of.order) > 0 {
			allowed := shareOf(namespace)
			for !allowed.isThrottled && len(of.order) > 0 && len(of.queued) < allowed.most {
				first := heap.Pop(of).(*inLine)
				of.virtualTime = max(of.virtualTime, first.tag)
				delete(of.pods, first.key)
				// If the namespace has used up its share, its only queued pod must not be refused.
				of.queued[first.key] = &queued{checked: now, hasTurn: allowed.most == maxQueuedWithoutShare && len(of.queued) == 0}
				queue = append(queue, first.entry)
			}
		}
		l.tidy(namespace, of)
	}
	return queue
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (of *line) Len() int { return len(of.order) }

// Less compares priorities, then tags, and then the order of arrival.
func (of *line) Less(i, j int) bool {
	a, b := of.order[i], of.order[j]
	if p, q := corev1helpers.PodPriority(a.pod), corev1helpers.PodPriority(b.pod); p != q {
		return p > q
	}
	return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.joined, b.joined)) < 0
}

// Swap also updates the indexes of the pods.
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
