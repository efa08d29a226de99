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
//   1. Gate queues only a few pods of a namespace at a time. Further pods join the line. If Admit refuses a pod because of the
//      namespace's share, that pod joins the line, too.
//   2. When the attempt of a queued pod has ended, or the pod is deleted, Run queues the first pod of the line. If the
//      namespace has used up its share, Run may wait.
//   3. Run then queues a pod of this namespace only when no other namespace waits. Admit doesn't refuse the pod.
//
// After an error, a pod in the scheduling queue backs off, but an activated pod does not: it would be retried at once, forever.
// So the guard itself keeps a pod in line until the pod's back-off after an error ([Guard.Failed]) is over.
//
// A waiting pod makes no attempts and causes no writes. Deleted pods leave the line ([Guard.Forget]), so a line never has
// more pods than the cluster.

const (
	// maxQueued limits the queued pods of a namespace with tokens. If more pods were queued, many of them would be refused as
	// soon as the tokens are used up.
	maxQueued = 8
	// maxQueuedWithoutShare limits the queued pods of a namespace without tokens. While one pod is tried, the next one is ready.
	maxQueuedWithoutShare = 2
)

// entry is a pod or a group in the guard's lists. For a group, pod is any of the group's pods.
type entry struct {
	pod *v1.Pod
	// key is the UID of the pod. For a group, key is the namespace and the name of the group.
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

// minimal returns the entry with a small copy of the pod. The copy has only the fields that Activate needs, and the priority.
func (e entry) minimal() entry {
	e.pod = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.pod.Namespace, Name: e.pod.Name, UID: e.pod.UID},
		Spec:       v1.PodSpec{SchedulingGroup: e.pod.Spec.SchedulingGroup, Priority: e.pod.Spec.Priority},
	}
	return e
}

// hasReason reports whether the pod's condition PodScheduled contains why, the reason for its wait. A condition about
// scheduling gates is outdated, because the gates were removed. The condition of a pod in a group is about the group, so any
// text counts.
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
	// joined counts all pods that ever joined a line. It numbers them in the order of arrival.
	joined int
	// nextCheck is the earliest time at which check may list the scheduling queue again.
	nextCheck time.Time
	errors    attemptErrors
}

// line holds the waiting pods and groups of one namespace, by priority. Within a priority, new pods and retried pods take
// turns, each in the order of arrival. So many retried pods don't delay a new pod, and many new pods don't delay retried pods.
type line struct {
	order []*inLine
	// order is a heap of the pods whose turn may come. It implements start-time fair queueing with two flows: pods that were
	// never tried, and pods that were tried. tags holds the greatest tag of each flow, in this order. virtualTime is the
	// greatest tag of all pods that left the heap to be queued.
	tags        [2]int
	virtualTime int
	// backingOff has the pods that wait for a back-off after an error. backOffEnds is the earliest end of these back-offs.
	backingOff  map[types.UID]*inLine
	backOffEnds time.Time
	// pods has all pods of order and backingOff.
	pods map[types.UID]*inLine
	// queued has the pods that are in the scheduling queue for an attempt.
	queued map[types.UID]*queued
}

// inLine is a pod in a line.
type inLine struct {
	entry
	// tried is true if the pod's condition says why an earlier attempt found no node.
	tried bool
	// tag orders pods of equal priority. joined orders pods with equal tags. index is the position in the heap.
	tag, joined, index int
	// due is the end of the pod's back-off after an error.
	due time.Time
}

// queued describes a pod that the guard let into the scheduling queue.
type queued struct {
	// checked is the last time at which the pod was let in, or was found in the queue.
	checked time.Time
	// hasTurn is true if Gate and Admit must not refuse the pod, even if other namespaces wait.
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

// pass reports whether a pod may be queued now. If not, pass adds the pod to the line. At most most pods of the namespace may
// be queued.
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

// hasTurn reports whether Gate and Admit must not refuse the pod.
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

// add adds a pod to the order. Its tag is one more than the last tag of its flow or the virtual time, whichever is greater.
func (of *line) add(waits *inLine) {
	tag := &of.tags[0]
	if waits.tried {
		tag = &of.tags[1]
	}
	*tag = max(*tag, of.virtualTime) + 1
	waits.tag = *tag
	heap.Push(of, waits)
}

// endBackOffs moves the pods whose back-off after an error has ended from backingOff to order.
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

// leave removes a pod from the line and from the queued pods, because the pod is being tried or is deleted.
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

// wait reports whether any line has a pod in its order.
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

// shareLimits holds the limits that follow from the tokens of a namespace.
type shareLimits struct {
	// most is the maximum number of queued pods.
	most int
	// isThrottled is true if the namespace has no tokens while pods of namespaces with tokens wait.
	isThrottled bool
}

// check removes entries of queued that are no longer in the scheduling queue: another plugin gates the pod, or its attempt has
// begun.
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

// next removes pods from the front of each line, as many as the limits of the namespace allow, and returns them to be queued.
// inQueue returns the pods in the scheduling queue.
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
				// If the namespace has no tokens and no other queued pod, this pod's attempt must not be refused.
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

// Less orders pods by descending priority, then by tag, then by arrival.
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
