// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxPutOff bounds the pods that are to be activated. Of those beyond it, one that
	// backs off is tried again when something changes in the cluster, or after the five
	// minutes after which each pod is, and one without a share is tried.
	maxPutOff = 1 << 16
	// maxActivated bounds how many pods of namespaces that used up their share are
	// activated at once. Others may come in the next moment, and wait while these are
	// refused once more.
	maxActivated = 64
)

// putOff are the pods that were refused, in the order in which they came.
type putOff struct {
	// backingOff are tried again at a time.
	backingOff map[types.UID]refused
	// sharing are tried again when those that have tokens had their turn. Some of order
	// may be gone.
	sharing map[types.UID]refused
	order   []types.UID
}

type refused struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
	until    time.Time
}

// until notes that the pod is to be activated at a time.
func (p *putOff) until(r Request, until time.Time) {
	if p.backingOff == nil {
		p.backingOff = map[types.UID]refused{}
	}
	if _, known := p.backingOff[r.Pod.UID]; known || len(p.backingOff) < maxPutOff {
		p.backingOff[r.Pod.UID] = refused{r.Pod, r.Activate, until}
	}
}

// share notes that the pod is to be activated when it is its turn. It returns false if there
// are too many of them.
func (p *putOff) share(r Request) bool {
	if p.sharing == nil {
		p.sharing = map[types.UID]refused{}
	}
	if _, known := p.sharing[r.Pod.UID]; !known {
		if len(p.sharing) >= maxPutOff {
			return false
		}
		p.order = append(p.order, r.Pod.UID)
	}
	p.sharing[r.Pod.UID] = refused{pod: r.Pod, activate: r.Activate}
	return true
}

// due takes those out that have backed off long enough. next is when that is for the next,
// zero if there is none.
func (p *putOff) due(now time.Time) (due []refused, next time.Time) {
	for uid, r := range p.backingOff {
		switch {
		case !r.until.After(now):
			due = append(due, r)
			delete(p.backingOff, uid)
		case next.IsZero() || r.until.Before(next):
			next = r.until
		}
	}
	return due, next
}

// turn takes those out whose turn it is.
func (p *putOff) turn(isThrottled func(namespace string) bool) (turn []refused) {
	left := p.order[:0]
	throttled := map[string]bool{}
	for i, uid := range p.order {
		if len(turn) == maxActivated {
			left = append(left, p.order[i:]...)
			break
		}
		r := p.sharing[uid]
		waits, known := throttled[r.pod.Namespace]
		if !known {
			waits = isThrottled(r.pod.Namespace)
			throttled[r.pod.Namespace] = waits
		}
		if waits {
			left = append(left, uid)
			continue
		}
		turn = append(turn, r)
		delete(p.sharing, uid)
	}
	clear(p.order[len(left):])
	p.order = left
	return turn
}
