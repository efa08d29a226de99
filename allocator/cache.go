// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "github.com/celset/celset/allocator/internal/plan"

type (
	// Cache holds results that allocators share ([WithCache]). Its size is limited. It never changes the result of a call.
	Cache = plan.Cache
	// CacheOption configures a [Cache].
	CacheOption = plan.CacheOption
	// Refusals finds the nodes with a cached result that the claims don't fit ([Allocator.RefusalsOf]).
	Refusals = plan.Refusals
	// Acceptance is a condition on complete sets, in addition to the constraints of the claim ([WithAcceptance]).
	Acceptance = plan.Acceptance
	// Total is a linear inequality over a set of devices. It is part of an [Acceptance].
	Total = plan.Total
)

// DefaultCacheBytes is the size of a [Cache] without options.
const DefaultCacheBytes = plan.DefaultCacheBytes

// NewCache returns an empty Cache.
func NewCache(opts ...CacheOption) *Cache { return plan.NewCache(opts...) }

// CacheBytes sets the size of a [Cache] in bytes.
func CacheBytes(limit int64) CacheOption { return plan.CacheBytes(limit) }
