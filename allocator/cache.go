// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"weak"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/room"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/allocator/internal/verdict"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/cel/memo"
)

// Nodes of one hardware type differ in names and in what is in use, and from one
// scheduling attempt to the next little changes. So what is found out about devices
// is kept under a key of everything that it depends on (keys.go), as long as there is room
// for it (sizes.go). What nodes have is not among it: that is bounded by the cluster, and
// kept as long as it is right ([inventory.Index]).
//
// Nothing is kept of an evaluation that failed: it is repeated, and fails again.

// DefaultCacheBytes is what a [Cache] may take: enough for 5,000 nodes of one hardware type
// and many claims, or for 1,800 nodes with 64 devices no two of which are alike in what
// claims read.
const DefaultCacheBytes int64 = 256 << 20

// Cache is what allocators share to find out nothing twice: tables of expressions,
// verdicts of selectors and of constraints. It is safe for concurrent use, bounded in bytes,
// and changes no answer. Only a reason why claims don't fit ([WithReasons]) may say more
// when more is known.
//
// What was not used for the longest time goes first, whoever asked for it. Claims by the
// thousand that nobody repeats drive out what others use: that takes them time.
//
// ResourceSlices and Nodes that an allocator with a Cache has seen must not be modified
// any more, not even after the allocator was dropped: informers and their listers keep to
// that. All allocators with one Cache must have the same cache of selectors.
type Cache struct {
	memory     *memo.Memory
	contents   *memo.Memo[contentKey, fingerprint.Sum]
	views      *memo.Memo[viewKey, *view.View]
	selections *memo.Memo[selectionKey, *selection.Row]
	tables     *memo.Memo[tablesKey, tabulated]
	verdicts   *memo.Memo[verdictsKey, *verdict.Table]
	answers    *memo.Memo[answerKey, keptAnswer]
	symmetries *memo.Memo[symmetryKey, []int]
	rooms      *memo.Memo[roomKey, *room.Sets]
	conflicts  *memo.Memo[weak.Pointer[inventory.Inventory], bitset.List]
	// viewsMade numbers views.
	viewsMade atomic.Uint64
	// index is of the slices that there were last.
	index inventory.Latest
}

// CacheOption changes a [Cache].
type CacheOption func(*cacheOptions)

type cacheOptions struct{ bytes int64 }

// CacheBytes replaces [DefaultCacheBytes].
func CacheBytes(limit int64) CacheOption {
	return func(o *cacheOptions) { o.bytes = limit }
}

// NewCache returns an empty Cache.
func NewCache(opts ...CacheOption) *Cache {
	options := cacheOptions{bytes: DefaultCacheBytes}
	for _, opt := range opts {
		opt(&options)
	}
	memory := memo.New(options.bytes)
	return &Cache{
		index:      inventory.Latest{Attach: func() any { return view.NewLatest(memory) }},
		memory:     memory,
		contents:   memo.In(memory, sizeOfContent),
		views:      memo.In(memory, sizeOfView),
		selections: memo.In(memory, sizeOfSelections),
		tables:     memo.In(memory, sizeOfTables),
		verdicts:   memo.In(memory, sizeOfVerdicts),
		answers:    memo.In(memory, sizeOfAnswer),
		symmetries: memo.In(memory, sizeOfSymmetry),
		rooms:      memo.In(memory, sizeOfRoom),
		conflicts:  memo.In(memory, sizeOfConflicts),
	}
}

// WithCache lets allocators share what they find out. Without it an allocator has a
// Cache of its own.
func WithCache(cache *Cache) Option {
	return func(o *options) { o.cache, o.sharesCache = cache, true }
}

// Used is about how many bytes are taken of those that there may be.
func (c *Cache) Used() int64 { return c.memory.Used() }

// find returns what the entry has, or finds it out, and tells whether it was known.
func find[K comparable, V any](ctx context.Context, entry *memo.Entry[K, V], create func() (V, error)) (value V, known bool, err error) {
	value, known, err = entry.Find(ctx, create)
	return value, known, interrupted(ctx, err)
}

// interrupted says what has ended waiting for what somebody else finds out.
func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, memo.ErrInterrupted) {
		return fmt.Errorf("filter operation aborted: %w", cel.ContextError(ctx))
	}
	return err
}

// verdictsShare is the part of a Cache that the verdicts of one expression may take: an eighth.
const verdictsShare = 8

// verdictsOf returns the verdicts of an expression on sets of the devices in a view.
func (c *Cache) verdictsOf(v *view.View, d *definition) *verdict.Table {
	entry := c.verdicts.At(verdictsKey{v.Number, d.key})
	found, _, _ := entry.Find(context.Background(), func() (*verdict.Table, error) {
		return verdict.NewTable(len(v.Values), c.memory.Limit()/verdictsShare, entry.Grow), nil
	})
	return found
}

// readingBytes bounds what is known of expressions, whatever devices they are about.
const readingBytes = 32 << 20

// What expressions say is shared by all allocators of the process, as the environment is
// that compiles expressions: it is about the text and nothing else.
var (
	readings           = memo.New(readingBytes)
	analyses           = memo.In(readings, sizeOfAnalysis)
	expressionReadSets = memo.In(readings, sizeOfExpressionReadSet)
	selectorReadSets   = memo.In(readings, sizeOfSelectorReadSet)
)

// analyzed is what was read in an expression.
type analyzed struct {
	*bound.Analysis
	// program is what the expression was compiled to.
	program memo.Part
}

// analysisOf reads an expression for sets of the given shape.
func analysisOf(d *definition, shape setShape) analyzed {
	analyze := bound.Analyze
	switch {
	case d.key.isGoal:
		analyze = func(expression *device.Expression, size int) *bound.Analysis {
			return bound.AnalyzeGoal(expression, size, shape.ascending)
		}
	case shape.ascending:
		analyze = bound.AnalyzeAscending
	}
	return analyses.Get(analysisKey{d.key, shape}, func() analyzed {
		return analyzed{analyze(d.expression, shape.size), memo.Part{Of: *d.expression, Bytes: d.expression.Size()}}
	})
}

// tabulated is the tables of an expression over the devices in a view.
type tabulated struct {
	*bound.Tables
	view    *view.View
	program memo.Part
}

// tablesOf returns the tables of an expression over the devices in a view, or of its first conjuncts if
// what follows may cost more than the limit. nil if nothing is understood, or the expression is too large
// for so many devices.
func (c *Cache) tablesOf(v *view.View, d *definition, shape setShape) *bound.Tables {
	entry := c.tables.At(tablesKey{v.Number, analysisKey{d.key, shape}})
	found, _, _ := entry.Find(context.Background(), func() (tabulated, error) {
		analysis := analysisOf(d, shape)
		leading := analysis.Leading(v.Values)
		if leading == nil || !leading.Fits(len(v.Values)) {
			return tabulated{}, nil
		}
		tables := leading.Tabulate(v.Values)
		tables.Grown = entry.Grow
		return tabulated{tables, v, analysis.program}, nil
	})
	return found.Tables
}
