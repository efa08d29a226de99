// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/lru"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// Nodes of one hardware type differ in names and in what is in use, and from one
// scheduling attempt to the next little changes. So what is found out about devices
// is kept under a key of everything that it depends on:
//
//	what                                  key
//	pools and devices of a node           the node's slices, by identity ([inventory])
//	devices as expressions see them       their content, without names ([hardware])
//	verdicts of selectors on devices      hardware, texts of the selectors
//	tables of a CEL constraint            hardware, expression, size of the set
//	verdicts of a CEL constraint on sets  hardware, expression, positions of the devices
//	kinds of devices ([search.alike])     hardware, attributes that are read
//	answers to claims                     hardware, claims, what is in use ([keptAnswer])
//
// Nothing is kept of an evaluation that failed: it is repeated, and fails again.

// The sizes bound the memory. A node with 64 devices takes about 20 KiB in
// inventories; tables take at most some MiB each, usually tens of KiB; a verdict takes
// about 200 bytes, an answer about 500.
const (
	maxInventories = 8192
	maxContents    = 2 * maxInventories
	maxHardware    = 256
	maxSelections  = 1024
	maxTables      = 64
	maxAnalyses    = 256
	maxVerdicts    = 1 << 16
	maxAnswers     = 1 << 14
	maxKinds       = 1024
)

// Cache is what allocators share to find out nothing twice: tables of expressions,
// verdicts of selectors and of constraints. It is safe for concurrent use, bounded,
// and changes no answer.
//
// ResourceSlices that an allocator with a Cache has seen must not be modified any
// more, not even after the allocator was dropped: informers and their listers keep to
// that. All allocators with one Cache must have the same cache of selectors.
type Cache struct {
	// mutex is held to look something up and to enter it, not to make it.
	mutex sync.Mutex

	inventories, contents, hardware, selections, tables, analyses, verdicts, answers, kinds *lru.Cache
}

// NewCache returns an empty Cache.
func NewCache() *Cache {
	return &Cache{
		inventories: lru.New(maxInventories),
		contents:    lru.New(maxContents),
		hardware:    lru.New(maxHardware),
		selections:  lru.New(maxSelections),
		tables:      lru.New(maxTables),
		analyses:    lru.New(maxAnalyses),
		verdicts:    lru.New(maxVerdicts),
		answers:     lru.New(maxAnswers),
		kinds:       lru.New(maxKinds),
	}
}

// WithCache lets allocators share what they find out. Without it an allocator has a
// Cache of its own.
func WithCache(cache *Cache) Option {
	return func(o *options) { o.cache, o.sharesCache = cache, true }
}

// get returns what is kept under the key, or else makes it: once, however many ask for
// it at the same time.
func get[V any](c *Cache, entries *lru.Cache, key any, create func() V) V {
	c.mutex.Lock()
	once, known := entries.Get(key)
	if !known {
		once = sync.OnceValue(create)
		entries.Add(key, once)
	}
	c.mutex.Unlock()
	return once.(func() V)()
}

// analysisKey is everything that an analysis depends on.
type analysisKey struct {
	expression device.Expression
	size       int
}

// analysis of an expression for sets of the given size.
func (c *Cache) analysis(expression *device.Expression, size int) *bound.Analysis {
	return get(c, c.analyses, analysisKey{*expression, size}, func() *bound.Analysis { return bound.Analyze(expression, size) })
}

// tablesKey is everything that tables depend on.
type tablesKey struct {
	hardware *hardware
	analysisKey
}

// tablesOf returns the tables of an analysis over some hardware.
func (c *Cache) tablesOf(h *hardware, analysis *bound.Analysis, expression *device.Expression, size int) *bound.Tables {
	return get(c, c.tables, tablesKey{h, analysisKey{*expression, size}}, func() *bound.Tables { return analysis.Tabulate(h.values) })
}

// inventoryKey is what an inventory depends on, besides the slices, which are compared.
type inventoryKey struct {
	node     string
	features structured.Features
}
