// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"
	"sync/atomic"

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
//	slices by node                        all slices, by identity ([sliceIndex])
//	pools and devices of a node           the node's slices, by identity ([inventory]), or all
//	                                      slices and the node ([dependentInventories])
//	devices as claims see them            their content but for names and for attributes that
//	                                      the claims don't read ([hardware], [footprint])
//	verdicts of selectors on devices      hardware, texts of the selectors
//	tables of a CEL constraint            hardware, expression, size of the set
//	verdicts of a CEL constraint on sets  hardware, expression, positions of the devices
//	kinds of devices ([search.alike])     hardware, attributes that are read
//	answers to claims                     hardware, claims, what is in use ([keptAnswer])
//
// Nothing is kept of an evaluation that failed: it is repeated, and fails again.

// The sizes bound the memory. A node with 64 devices takes about 7 KiB, its answers and
// verdicts included, but 97 KiB if no other has the same in what the claims read; tables take
// at most some MiB each, usually tens of KiB; a verdict takes about 200 bytes, an answer about
// 500. Besides, [sliceIndex] has each node of the cluster.
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
// and changes no answer. Only a reason why claims don't fit ([WithReasons]) may say more
// when more is known.
//
// ResourceSlices and Nodes that an allocator with a Cache has seen must not be modified
// any more, not even after the allocator was dropped: informers and their listers keep to
// that. All allocators with one Cache must have the same cache of selectors.
type Cache struct {
	inventories, contents, hardware, selections, tables, verdicts, answers, kinds *store
	// index is of the slices that there were last.
	index atomic.Pointer[sliceIndex]
}

// NewCache returns an empty Cache.
func NewCache() *Cache {
	stores := [...]store{
		{entries: lru.New(maxInventories)}, {size: maxContents}, {size: maxHardware}, {size: maxSelections},
		{size: maxTables}, {size: maxVerdicts}, {size: maxAnswers}, {size: maxKinds},
	}
	return &Cache{
		inventories: &stores[0],
		contents:    &stores[1],
		hardware:    &stores[2],
		selections:  &stores[3],
		tables:      &stores[4],
		verdicts:    &stores[5],
		answers:     &stores[6],
		kinds:       &stores[7],
	}
}

// WithCache lets allocators share what they find out. Without it an allocator has a
// Cache of its own.
func WithCache(cache *Cache) Option {
	return func(o *options) { o.cache, o.sharesCache = cache, true }
}

// store keeps what was used last.
type store struct {
	// mutex is held to look something up and to enter it, not to make it.
	mutex sync.Mutex
	// size is how many entries there may be.
	size int
	// onlyKey and only are the one entry that there is before there are entries: a search for
	// one node needs no more than one in most stores.
	onlyKey, only any
	entries       *lru.Cache
}

// look returns what is kept under the key.
func (s *store) look(key any) (any, bool) {
	if s.entries != nil {
		return s.entries.Get(key)
	}
	return s.only, s.onlyKey == key
}

// keep enters what is not kept yet.
func (s *store) keep(key, value any) {
	switch {
	case s.entries != nil:
		s.entries.Add(key, value)
	case s.onlyKey == nil:
		s.onlyKey, s.only = key, value
	default:
		s.entries = lru.New(s.size)
		s.entries.Add(s.onlyKey, s.only)
		s.entries.Add(key, value)
		s.onlyKey, s.only = nil, nil
	}
}

func newStore(size int) *store { return &store{size: size} }

// entry is something that is made once, by the first who needs it.
type entry[V any] struct {
	once  sync.Once
	value V
}

// get returns what is kept under the key, or else makes it: once, however many ask for
// it at the same time.
func get[V any](s *store, key any, create func() V) V {
	e := enter(s, key, func() *entry[V] { return new(entry[V]) })
	e.once.Do(func() { e.value = create() })
	return e.value
}

// enter returns what is kept under the key, or else makes it while others wait, which
// must not take long.
func enter[V any](s *store, key any, create func() V) V {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.look(key); ok {
		return known.(V)
	}
	made := create()
	s.keep(key, made)
	return made
}

// analysisKey is everything that an analysis depends on.
type analysisKey struct {
	expression device.Expression
	size       int
}

// analyses are shared by all allocators of the process, as the environment is that
// compiles expressions: they are about the text and nothing else.
var analyses = newStore(maxAnalyses)

// analysisOf reads an expression for sets of the given size.
func analysisOf(expression *device.Expression, size int) *bound.Analysis {
	return get(analyses, analysisKey{*expression, size}, func() *bound.Analysis { return bound.Analyze(expression, size) })
}

// tablesKey is everything that tables depend on.
type tablesKey struct {
	hardware *hardware
	analysisKey
}

// tablesOf returns the tables of an expression over some hardware. nil if the expression
// is not understood, is too large for so many devices, or may cost more than the limit.
func (c *Cache) tablesOf(h *hardware, expression *device.Expression, size int) *bound.Tables {
	return get(c.tables, tablesKey{h, analysisKey{*expression, size}}, func() *bound.Tables {
		analysis := analysisOf(expression, size)
		if !analysis.Understood() || !analysis.Fits(len(h.values)) || !analysis.Affordable(h.values) {
			return nil
		}
		return analysis.Tabulate(h.values)
	})
}

// inventoryKey is what an inventory depends on, besides the slices, which are compared.
type inventoryKey struct {
	node     string
	features structured.Features
}
