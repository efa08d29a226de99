// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import "time"

// maxShares bounds the namespaces of which tokens are known. A bucket fills up within
// seconds and is forgotten then, so there are as many as namespaces that were busy lately.
const maxShares = 4096

// shares has a bucket of tokens for each namespace. A token is time. A namespace that is not
// among them has a full bucket.
type shares struct {
	buckets map[string]bucket
}

// bucket is how much there was when.
type bucket struct {
	tokens time.Duration
	at     time.Time
}

// tokens is what a namespace has left, which is negative if it took more.
func (s *shares) tokens(namespace string, now time.Time, limits *Limits) time.Duration {
	b, known := s.buckets[namespace]
	if !known {
		return limits.ShareBurst
	}
	return b.refilled(now, limits)
}

func (b bucket) refilled(now time.Time, limits *Limits) time.Duration {
	// Divided first: the product may overflow after months.
	elapsed := max(0, now.Sub(b.at))
	refill := elapsed/100*time.Duration(limits.SharePercent) + elapsed%100*time.Duration(limits.SharePercent)/100
	if refill >= limits.ShareBurst-b.tokens {
		return limits.ShareBurst
	}
	return b.tokens + refill
}

// charge takes tokens. A namespace that was alone may have taken much: no more than a bucket
// is remembered, so that it does not pay for hours when it is not alone any more.
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

// forgetFull makes room. If all namespaces have taken something just now, some start anew.
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
