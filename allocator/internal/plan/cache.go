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
// attempts. So results are cached, each under a key of everything that it depends on. There are three kinds of results:
//
//   - An analysis of a text holds for all devices (package definition).
//   - A table holds the results of a text for the devices of a view ([tableKey]).
//   - An answer holds the devices that claims get from a view with certain devices in use ([answerKey]).
//
// The inventories of nodes are not part of the cache. The cluster bounds their number, and [inventory.Index] keeps each one while
// it is valid.
// Keys keep no large object alive: they contain fingerprints of texts and views, and weak pointers to inventories. A failed
// evaluation is not cached but repeated, and fails again. Sizes of entries are estimates. The devices of a view count once
// while an entry points to them. Anything else that several entries point to counts for each of them.

// DefaultCacheBytes is the size of a [Cache] without options. It is enough for 5,000 nodes of one hardware type and many claims,
// or for 1,800 nodes with 64 devices that all differ in attributes that claims read.
const DefaultCacheBytes int64 = 256 << 20

// Cache holds results that allocators share: tables of expressions, verdicts of selectors and verdicts of constraints. It is safe
// for concurrent use, bounded in bytes, and changes no answer. Only the reason why claims don't fit may become more detailed.
//
// The least recently used entry is evicted first, no matter who created it. Thousands of different claims can evict entries of
// others, which then only take longer.
//
// ResourceSlices and Nodes must not be modified after an allocator with a Cache has seen them, not even after the allocator is
// gone. Informers and their listers comply with that. All allocators with one Cache must have the same cache of selectors.
type Cache struct {
	memory  *memo.Memory
	tables  *memo.Memo[tableKey, sized]
	answers *memo.Memo[answerKey, answer.Answer]
	// index is the index of the latest slices.
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

// sized is a value with its estimated size in bytes.
type sized struct {
	value any
	bytes int
	// keeps is the view whose devices the value keeps alive, or nil. The devices count once for all values that keep them.
	keeps *view.View
}

func weightOf[K comparable](_ K, w *sized) memo.Size {
	size := memo.Size{Bytes: w.bytes}
	if w.keeps != nil {
		size.Parts = []memo.Part{{Of: w.keeps, Bytes: w.keeps.Bytes()}}
	}
	return size
}

// Find returns the value of the entry, and creates it if necessary. known reports whether the value was there already.
func Find[K comparable, V any](ctx context.Context, entry *memo.Entry[K, V], create func() (V, error)) (value V, known bool, err error) {
	value, known, err = entry.Find(ctx, create)
	return value, known, Interrupted(ctx, err)
}

// Interrupted returns the cause if the context ended while waiting for a value that another call creates. It returns other errors
// unchanged.
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
	// by is the environment of the text, or another object that the table depends on.
	by any
	// text is the text of the table. isGoal and shape refine the question that the table answers.
	text   fingerprint.Sum
	isGoal bool
	shape  definition.SetShape
}

type tableKind int8

const (
	// tableOfValues holds the devices as values of expressions. It has no text.
	tableOfValues tableKind = iota
	// tableOfSelectors holds the verdicts of the selectors of a request on devices.
	tableOfSelectors
	// tableOfExpression holds the results of a CEL constraint for devices and pairs, for sets of one shape.
	tableOfExpression
	// tableOfVerdicts holds the verdicts of a CEL constraint on sets.
	tableOfVerdicts
	// tableOfSymmetry holds the classes of devices with the same attributes in a read set.
	tableOfSymmetry
	// tableOfConflicts holds the devices of an inventory that exclude each other. Its key has no view.
	tableOfConflicts
	// tableOfSets holds the sets that a claim could get on an idle node, for [shapeFeatures].
	tableOfSets
)

// shapeFeatures holds everything besides the claim that the sets of a shape depend on.
type shapeFeatures struct {
	features    structured.Features
	environment *device.Environment
	// devices is nil for plain inventories, because the view already covers everything that the claim reads.
	devices weak.Pointer[inventory.Inventory]
}

// tableAt returns a cached table. Unlike [tableOf] it needs no function that creates the table.
func tableAt[T any](c *Cache, key tableKey) (table T, known bool) {
	if found := c.tables.At(key).Look(); found != nil {
		return found.value.(T), true
	}
	return table, false
}

// tableOf returns a table, and creates it if it is not cached. create gets a function that reports growth of the table in bytes.
func tableOf[T any](c *Cache, key tableKey, create func(grown func(bytes int)) (table T, bytes int)) T {
	return tableKeeping(c, key, func(grown func(int)) (table T, bytes int, keeps *view.View) {
		table, bytes = create(grown)
		return table, bytes, nil
	})
}

// tableKeeping is like tableOf for tables that keep the devices of a view alive.
func tableKeeping[T any](c *Cache, key tableKey, create func(grown func(bytes int)) (table T, bytes int, keeps *view.View)) T {
	entry := c.tables.At(key)
	found, _, _ := entry.Find(context.Background(), func() (sized, error) {
		table, bytes, keeps := create(entry.Grow)
		return sized{table, bytes, keeps}, nil
	})
	return found.value.(T)
}

// ViewOf returns the devices of an inventory as expressions with the read set see them.
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

// answerKey holds everything that an answer depends on, for plain inventories.
type answerKey struct {
	view        view.ID
	features    structured.Features
	environment *device.Environment
	claims      fingerprint.Sum
	costBudget  uint64
	stepBudget  int64
	preferences budget.Budget
	// prefers is true if preferences are read.
	prefers bool
	reasons bool
	// inUse holds a bit for each device.
	inUse string
}

func weightOfAnswer(key answerKey, a *answer.Answer) memo.Size {
	return memo.Size{Bytes: len(key.inUse) + a.Bytes()}
}

// AnswerEntry is the cache entry of an answer. It may be empty.
type AnswerEntry = memo.Entry[answerKey, answer.Answer]
