// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxShares limits the number of stored buckets. A bucket that has filled up is removed, so only namespaces that were busy in
// the last seconds have one.
const maxShares = 4096

// shares maps each namespace to its token bucket. Tokens are scheduling time. A namespace without an entry has a full bucket.
type shares struct {
	buckets map[string]bucket
}

// bucket is the number of tokens that a namespace had at a time.
type bucket struct {
	tokens time.Duration
	at     time.Time
}

// tokens returns the tokens of a namespace now. The number is negative if the namespace used more time than it had.
func (s *shares) tokens(namespace string, now time.Time, limits *Limits) time.Duration {
	b, known := s.buckets[namespace]
	if !known {
		return limits.ShareBurst
	}
	return b.refilled(now, limits)
}

func (b bucket) refilled(now time.Time, limits *Limits) time.Duration {
	// The division comes first, because elapsed*SharePercent may overflow after months.
	elapsed := max(0, now.Sub(b.at))
	refill := elapsed/100*time.Duration(limits.SharePercent) + elapsed%100*time.Duration(limits.SharePercent)/100
	if refill >= limits.ShareBurst-b.tokens {
		return limits.ShareBurst
	}
	return b.tokens + refill
}

// charge takes tokens from a namespace. The debt is at most one full bucket. So a namespace that was busy alone for long waits
// only briefly when others come.
func (s *shares) charge(namespace string, taken time.Duration, now time.Time, limits *Limits) {
	if taken <= 0 {
		return
	}
	left := max(-limits.ShareBurst, s.tokens(namespace, now, limits)-taken)
	if s.buckets == nil {
		s.buckets = map[string]bucket{}
	}
	if _, known := s.buckets[namespace]; !known && len(s.buckets) >= maxShares {
		s.forgetFull(now, limits)
	}
	s.buckets[namespace] = bucket{left, now}
}

// forgetFull removes full buckets. If maxShares is still reached, it removes others, too. A missing bucket counts as full.
func (s *shares) forgetFull(now time.Time, limits *Limits) {
	for namespace, b := range s.buckets {
		if b.refilled(now, limits) >= limits.ShareBurst {
			delete(s.buckets, namespace)
		}
	}
	for namespace := range s.buckets {
		if len(s.buckets) < maxShares {
			return
		}
		delete(s.buckets, namespace)
	}
}

// mostQueued returns the maximum number of pods of a namespace that may be queued at a time.
func (g *Guard) mostQueued(namespace string, now time.Time) int {
	if g.shares.tokens(namespace, now, &g.limits) > 0 {
		return maxQueued
	}
	return maxQueuedWithoutShare
}

// isThrottled reports whether the namespace has no tokens while pods of namespaces with tokens wait.
func (g *Guard) isThrottled(namespace string, now time.Time) bool {
	if g.limits.SharePercent >= 100 || g.shares.tokens(namespace, now, &g.limits) > 0 {
		return false
	}
	return g.othersWait(namespace, now)
}

// seenFor is the minimum time between two listings of the scheduling queue.
const seenFor = 10 * time.Millisecond

// pause returns the time from one listing of the queue, with this number of pods, to the next. Listing takes some 100 ns for
// each pod, so listing a long queue takes longer than trying one pod.
func pause(pods int) time.Duration { return max(seenFor, time.Duration(pods)*10*time.Microsecond) }

// waiting holds the namespaces of the pods in the active queue.
type waiting struct {
	namespaces sets.Set[string]
	// until is the time at which namespaces is out of date.
	until time.Time
}

// inQueue returns the pods in the active queue.
func (g *Guard) inQueue() []*v1.Pod {
	if g.program.queue == nil {
		return nil
	}
	return g.program.queue.PodsInActiveQ()
}

// othersWait reports whether a pod of another namespace with tokens waits.
func (g *Guard) othersWait(namespace string, now time.Time) bool {
	if g.program.queue == nil {
		return false
	}
	if g.program.waiting.namespaces == nil || !g.program.waiting.until.After(now) {
		pods := g.inQueue()
		g.program.waiting = waiting{sets.New[string](), now.Add(pause(len(pods)))}
		for _, pod := range pods {
			g.program.waiting.namespaces.Insert(pod.Namespace)
		}
	}
	for other := range g.program.waiting.namespaces {
		if other != namespace && g.shares.tokens(other, now, &g.limits) > 0 {
			return true
		}
	}
	return false
}
