// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"container/heap"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// A pod that may not be tried now waits in the line of its namespace, outside of the queue of the pods that could be tried.
//
//  1. A pod joins the line when an attempt is refused for the namespace's share ([Guard.Admit]), or when it is about to be
//     queued while others of its namespace are in line ([Guard.Gate]).
//  2. When the share allows it the first pod of the line gets a turn: it is queued, and its attempt is not refused.
//  3. The next pod gets a turn when the attempt of the former has ended, or when the former is gone.
//
// So a pod that waits makes no attempts, and writes nothing.

// maxInLine bounds the pods in all lines together. One beyond it is tried.
const maxInLine = 1 << 16

// lines has the lines of all namespaces.
type lines struct {
	byNamespace map[string]*line
	length      int
	// joined counts pods that joined a line, for their order.
	joined int
}

// line has the pods of one namespace, those of the highest priority first, and otherwise those that came first.
type line struct {
	order []*inLine
	pods  map[types.UID]*inLine
	// turn is the pod that was queued and is still to be tried, nil if there is none.
	turn *inLine
	// checked is the last time at which turn was queued, or seen in the queue.
	checked time.Time
}

// inLine is a pod in a line.
type inLine struct {
	refused
	joined, index int
}

// concerns reports whether a pod has to wait in line. A pod without claims has to if it was refused before: only then is it
// known that it wants devices.
func (l *lines) concerns(r Request) bool {
	of := l.byNamespace[r.Pod.Namespace]
	return of != nil && (len(r.Claims) > 0 || of.pods[r.Pod.UID] != nil)
}

// hasTurn reports whether it is the pod's turn.
func (l *lines) hasTurn(pod *v1.Pod) bool {
	of := l.byNamespace[pod.Namespace]
	return of != nil && of.turn != nil && of.turn.pod.UID == pod.UID
}

// join adds a pod unless it is in line already. It returns false if there are too many.
func (l *lines) join(r Request) bool {
	if l.byNamespace == nil {
		l.byNamespace = map[string]*line{}
	}
	of := l.byNamespace[r.Pod.Namespace]
	if of != nil {
		if known := of.pods[r.Pod.UID]; known != nil {
			known.activate = r.Activate
			return true
		}
	}
	if l.length >= maxInLine {
		return false
	}
	if of == nil {
		of = &line{pods: map[types.UID]*inLine{}}
		l.byNamespace[r.Pod.Namespace] = of
	}
	l.joined++
	l.length++
	waits := &inLine{refused: newRefused(r), joined: l.joined}
	of.pods[r.Pod.UID] = waits
	heap.Push(of, waits)
	return true
}

// leave removes a pod that is being tried.
func (l *lines) leave(pod *v1.Pod) {
	of := l.byNamespace[pod.Namespace]
	if of == nil {
		return
	}
	if of.turn != nil && of.turn.pod.UID == pod.UID {
		of.turn = nil
	}
	if waits := of.pods[pod.UID]; waits != nil {
		heap.Remove(of, waits.index)
		delete(of.pods, pod.UID)
		l.length--
	}
	l.tidy(pod.Namespace, of)
}

func (l *lines) tidy(namespace string, of *line) {
	if len(of.order) == 0 && of.turn == nil {
		delete(l.byNamespace, namespace)
	}
}

// turns queues the first pod of each line whose share allows it. isQueued reports whether a pod is in the queue.
func (l *lines) turns(now time.Time, isThrottled func(namespace string) bool, isQueued func(*v1.Pod) bool) (queue []refused) {
	for namespace, of := range l.byNamespace {
		if of.turn != nil && now.Sub(of.checked) < pollInterval {
			continue
		}
		if of.turn != nil && isQueued(of.turn.pod) {
			of.checked = now
			continue
		}
		of.turn = nil
		if len(of.order) > 0 && !isThrottled(namespace) {
			for of.turn == nil && len(of.order) > 0 {
				first := heap.Pop(of).(*inLine)
				delete(of.pods, first.pod.UID)
				l.length--
				if !first.isGone(first.pod) {
					of.turn, of.checked = first, now
					queue = append(queue, first.refused)
				}
			}
		}
		l.tidy(namespace, of)
	}
	return queue
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (of *line) Len() int { return len(of.order) }

// Less compares priorities, and then the order in which the pods came.
func (of *line) Less(i, j int) bool {
	a, b := of.order[i], of.order[j]
	if p, q := corev1helpers.PodPriority(a.pod), corev1helpers.PodPriority(b.pod); p != q {
		return p > q
	}
	return a.joined < b.joined
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
