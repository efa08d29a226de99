// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"weak"

	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/memo"
)

// Nodes of one hardware type differ only in their names and in the devices in use, and little changes between scheduling
// attempts. So results are cached by everything that they depend on. The cache holds three kinds of results:
//
//   - The analysis of an expression holds for all devices (package definition).
//   - A table holds the values of an expression for the devices of a view ([tableKey]).
//   - An answer holds the result of an Allocate call: the devices that claims get from a view with certain devices in use, or
//     the reason why they don't fit ([answerKey]).
//
// The inventories of nodes are not part of the cache. The number of nodes limits them, and [inventory.Index] keeps each
// inventory while it is valid. Keys keep no large object alive: they contain fingerprints of expressions and views, and weak
// pointers to inventories. A failed evaluation is not cached. It is repeated and fails again. Sizes of entries are estimates.
// The devices of a view count once while at least one entry refers to the view. Any other object counts for each entry.

// DefaultCacheBytes is the size of a [Cache] without options. It is enough for 5,000 nodes of one hardware type and many
// claims. It is also enough for 1,800 nodes with 64 devices each if all devices differ in attributes that claims read.
const DefaultCacheBytes int64 = 256 << 20

// Cache holds results that allocators share: tables of expressions, verdicts of selectors and constraints, and answers. It is
// safe for concurrent use, limited in bytes, and never changes which devices are allocated. Only the reason why claims don't
// fit may become more detailed.
//
// The cache evicts the least recently used entry first, no matter which claim it belongs to. Thousands of different claims can
// evict the entries of other claims. Allocating those claims then only takes longer.
//
// ResourceSlices and Nodes must not be modified after an allocator with a Cache has used them, not even after the allocator is
// gone. Informers and their listers comply with that. All allocators with one Cache must have the same cache of selectors.
type Cache struct {
	memory  *memo.Memory
	tables  *memo.Memo[tableKey, sized]
	answers *memo.Memo[answerKey, answer.Answer]
	// index holds the inventories of nodes for the latest slices.
	index inventory.Latest
}

// CacheOption configures a [Cache].
type CacheOption func(*cacheOptions)

type cacheOptions struct{ bytes int64 }

// CacheBytes sets the size of a [Cache] in bytes.
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
	return &Cache{memory: memory, tables: memo.In(memory, weightOf[tableKey]), answers: memo.In(memory, weightOfAnswer)}
}

// Used returns the estimated number of bytes in use.
func (c *Cache) Used() int64 { return c.memory.Used() }

// sized is a cached value with its estimated size in bytes.
type sized struct {
	value any
	bytes int
	// keeps is the view whose devices the value keeps alive, or nil. The devices count once for all values with the same view.
	keeps *view.View
}

func weightOf[K comparable](_ K, w *sized) memo.Size {
	size := memo.Size{Bytes: w.bytes}
	if w.keeps != nil {
		size.Parts = []memo.Part{{Of: w.keeps, Bytes: w.keeps.Bytes()}}
	}
	return size
}

// Find returns the value of a cache entry, and creates the value if it is missing. known is true if the value existed.
func Find[K comparable, V any](ctx context.Context, entry *memo.Entry[K, V], create func() (V, error)) (value V, known bool, err error) {
	value, known, err = entry.Find(ctx, create)
	return value, known, Interrupted(ctx, err)
}

// Interrupted converts the error of a call that waited for a value from another call. If the context ended during the wait, it
// returns the cause of that. It returns other errors unchanged.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, memo.ErrInterrupted) {
		return fmt.Errorf("filter operation aborted: %w", cel.ContextError(ctx))
	}
	return err
}

// tableKey holds everything that a table depends on.
type tableKey struct {
	view view.ID
	kind tableKind
	// by is the environment that compiled the expression, or another object that the table depends on.
	by any
	// text is the fingerprint of the expression. isGoal and shape distinguish tables for the same expression.
	text   fingerprint.Sum
	isGoal bool
	shape  definition.SetShape
}

type tableKind int8

const (
	// tableOfValues holds the devices of a view in the form that expressions read. It depends on no expression.
	tableOfValues tableKind = iota
	// tableOfSelectors holds the verdicts of a request's selectors on devices.
	tableOfSelectors
	// tableOfExpression holds the values of parts of a CEL constraint for devices and pairs, for sets of one shape.
	tableOfExpression
	// tableOfVerdicts holds the verdicts of a CEL constraint on complete sets.
	tableOfVerdicts
	// tableOfSymmetry numbers the devices so that devices with the same attributes in a read set have the same number.
	tableOfSymmetry
	// tableOfConflicts holds, for each device of an inventory, the devices that exclude it. Its key has no view.
	tableOfConflicts
	// tableOfSets holds the sets of devices that a claim could get on an idle node. The field by is a [shapeFeatures].
	tableOfSets
)

// shapeFeatures holds everything that the sets of a shape depend on, except the claim and the view.
type shapeFeatures struct {
	features    structured.Features
	environment *device.Environment
	// devices is the inventory, or nil for a plain inventory, because the view then contains everything that the claim reads.
	devices weak.Pointer[inventory.Inventory]
}

// tableAt returns the table if it is cached. Unlike [tableOf] it does not create the table.
func tableAt[T any](c *Cache, key tableKey) (table T, known bool) {
	if found := c.tables.At(key).Look(); found != nil {
		return found.value.(T), true
	}
	return table, false
}

// tableOf returns the cached table, or caches the result of create. The table must call grown when it has grown.
func tableOf[T any](c *Cache, key tableKey, create func(grown func(bytes int)) (table T, bytes int)) T {
	return tableKeeping(c, key, func(grown func(int)) (table T, bytes int, keeps *view.View) {
		table, bytes = create(grown)
		return table, bytes, nil
	})
}

// tableKeeping is like tableOf for a table that keeps the devices of a view alive.
func tableKeeping[T any](c *Cache, key tableKey, create func(grown func(bytes int)) (table T, bytes int, keeps *view.View)) T {
	entry := c.tables.At(key)
	found, _, _ := entry.Find(context.Background(), func() (sized, error) {
		table, bytes, keeps := create(entry.Grow)
		return sized{table, bytes, keeps}, nil
	})
	return found.value.(T)
}

// ViewOf returns the view of an inventory: its devices in the form that expressions with the read set can read.
func ViewOf(c *Cache, of *inventory.Inventory, read view.ReadSet) *view.View {
	key := tableKey{view: view.IDOf(of, read), kind: tableOfValues}
	if known, ok := tableAt[*view.View](c, key); ok {
		return known
	}
	return tableKeeping(c, key, func(func(int)) (v *view.View, bytes int, keeps *view.View) {
		v = view.New(key.view, of)
		return v, 0, v
	})
}

// answerKey holds everything that the result of an Allocate call depends on if the inventory is plain.
type answerKey struct {
	view        view.ID
	features    structured.Features
	environment *device.Environment
	claims      fingerprint.Sum
	costBudget  uint64
	stepBudget  int64
	preferences budget.Budget
	// prefers is true if the allocator uses preferences.
	prefers bool
	reasons bool
	// inUse has a bit for each device, which is set if the device is in use.
	inUse string
}

func weightOfAnswer(key answerKey, a *answer.Answer) memo.Size {
	return memo.Size{Bytes: len(key.inUse) + a.Bytes()}
}

// AnswerEntry is the cache entry for the result of an Allocate call. It may be empty.
type AnswerEntry = memo.Entry[answerKey, answer.Answer]
