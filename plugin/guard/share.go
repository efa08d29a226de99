// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import "time"

// maxShares limits the stored buckets. A bucket fills up within seconds and is then removed, so only recently busy namespaces
// have one.
const maxShares = 4096

// shares maps namespaces to token buckets. A token is a unit of time. A namespace without an entry has a full bucket.
type shares struct {
	buckets map[string]bucket
}

// bucket holds the number of tokens at one time.
type bucket struct {
	tokens time.Duration
	at     time.Time
}

// tokens returns the tokens of a namespace. They are negative if the namespace took more time than it had.
func (s *shares) tokens(namespace string, now time.Time, limits *Limits) time.Duration {
	b, known := s.buckets[namespace]
	if !known {
		return limits.ShareBurst
	}
	return b.refilled(now, limits)
}

func (b bucket) refilled(now time.Time, limits *Limits) time.Duration {
	// The division comes first, because the product may overflow after months.
	elapsed := max(0, now.Sub(b.at))
	refill := elapsed/100*time.Duration(limits.SharePercent) + elapsed%100*time.Duration(limits.SharePercent)/100
	if refill >= limits.ShareBurst-b.tokens {
		return limits.ShareBurst
	}
	return b.tokens + refill
}

// charge takes tokens. The debt is limited to one bucket, so a namespace that was busy alone does not pay for hours when others
// come.
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

// forgetFull removes full buckets. If too many namespaces are busy, some of them get full buckets.
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
