// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "github.com/celset/celset/allocator/internal/plan"

type (
	// Cache is shared by allocators ([WithCache]), so that they find out nothing twice. It is bounded in bytes and changes no
	// answer.
	Cache = plan.Cache
	// CacheOption changes a [Cache].
	CacheOption = plan.CacheOption
	// Refusals tells on which nodes claims are known not to fit ([Allocator.RefusalsOf]).
	Refusals = plan.Refusals
	// Acceptance is a condition on complete sets that the caller of the search states ([WithAcceptance]).
	Acceptance = plan.Acceptance
	// Total is a linear inequality over a set, part of an [Acceptance].
	Total = plan.Total
)

// DefaultCacheBytes is the size of a [Cache] without options.
const DefaultCacheBytes = plan.DefaultCacheBytes

// NewCache returns an empty Cache.
func NewCache(opts ...CacheOption) *Cache { return plan.NewCache(opts...) }

// CacheBytes replaces [DefaultCacheBytes].
func CacheBytes(limit int64) CacheOption { return plan.CacheBytes(limit) }
