// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "github.com/celset/celset/allocator/internal/plan"

type (
	// Cache holds results that allocators share ([WithCache]). It is bounded in bytes and changes no answer.
	Cache = plan.Cache
	// CacheOption configures a [Cache].
	CacheOption = plan.CacheOption
	// Refusals finds nodes with a cached refusal of claims ([Allocator.RefusalsOf]).
	Refusals = plan.Refusals
	// Acceptance is a condition on complete sets that the caller of the search adds ([WithAcceptance]).
	Acceptance = plan.Acceptance
	// Total is a linear inequality over a set, part of an [Acceptance].
	Total = plan.Total
)

// DefaultCacheBytes is the size of a [Cache] without options.
const DefaultCacheBytes = plan.DefaultCacheBytes

// NewCache returns an empty Cache.
func NewCache(opts ...CacheOption) *Cache { return plan.NewCache(opts...) }

// CacheBytes sets the size of a [Cache] in bytes.
func CacheBytes(limit int64) CacheOption { return plan.CacheBytes(limit) }
