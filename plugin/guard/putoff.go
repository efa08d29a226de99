// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxPutOff bounds the pods whose claims back off and that are to be activated. A pod beyond it is tried again when something
// changes in the cluster, or after the five minutes after which each pod is.
const maxPutOff = 1 << 16

// putOff has the pods whose claims back off.
type putOff struct {
	backingOff map[types.UID]backingOff
}

type backingOff struct {
	refused
	until time.Time
}

// refused is a pod that is not tried now, and how it is activated.
type refused struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
	isGone   func(*v1.Pod) bool
}

// newRefused keeps of the pod only what the queue knows it by, and its priority.
func newRefused(r Request) refused {
	isGone := r.IsGone
	if isGone == nil {
		isGone = func(*v1.Pod) bool { return false }
	}
	return refused{&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: r.Pod.UID},
		Spec:       v1.PodSpec{SchedulingGroup: r.Pod.Spec.SchedulingGroup, Priority: r.Pod.Spec.Priority},
	}, r.Activate, isGone}
}

// until notes that the pod is to be activated at a time.
func (p *putOff) until(r Request, until time.Time) {
	if p.backingOff == nil {
		p.backingOff = map[types.UID]backingOff{}
	}
	if _, known := p.backingOff[r.Pod.UID]; known || len(p.backingOff) < maxPutOff {
		p.backingOff[r.Pod.UID] = backingOff{newRefused(r), until}
	}
}

// due takes those out that have backed off long enough. next is when that is for the next,
// zero if there is none.
func (p *putOff) due(now time.Time) (due []refused, next time.Time) {
	for uid, r := range p.backingOff {
		switch {
		case !r.until.After(now):
			due = append(due, r.refused)
			delete(p.backingOff, uid)
		case next.IsZero() || r.until.Before(next):
			next = r.until
		}
	}
	return due, next
}
