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

// Nodes of one hardware type differ in names and in what is in use, and from one
// scheduling attempt to the next little changes. So what is found out is kept under a key of
// everything that it depends on. There are three kinds of it:
//
//   - an analysis of a text holds for all devices (package definition);
//   - a table has the results of a text for the devices of a view ([tableKey]);
//   - an answer has the devices that claims get from a view with these devices in use ([answerKey]).
//
// What nodes have is not among it: that is bounded by the cluster, and kept as long as it is
// right ([inventory.Index]).
//
// Keys hold nothing that is larger than they are: texts and views stand in them as
// fingerprints, inventories as weak pointers. Nothing is kept of an evaluation that failed: it is
// repeated, and fails again. Weights are estimates. The devices of a view count once, as long as an
// entry points to them; what else several entries point to counts for each of them.

// DefaultCacheBytes is the size of a [Cache] without options. It is enough for 5,000 nodes of one hardware type
// and many claims, or for 1,800 nodes with 64 devices no two of which are alike in what
// claims read.
const DefaultCacheBytes int64 = 256 << 20

// Cache is shared by allocators, so that they find out nothing twice. It has tables of expressions,
// verdicts of selectors and of constraints. It is safe for concurrent use, bounded in bytes,
// and changes no answer. Only a reason why claims don't fit may say more
// when more is known.
//
// What was not used for the longest time goes first, whoever asked for it. Claims by the
// thousand that nobody repeats drive out what others use: that takes them time.
//
// ResourceSlices and Nodes that an allocator with a Cache has seen must not be modified
// any more, not even after the allocator was dropped: informers and their listers keep to
// that. All allocators with one Cache must have the same cache of selectors.
type Cache struct {
	memory  *memo.Memory
	tables  *memo.Memo[tableKey, weighed]
	answers *memo.Memo[answerKey, answer.Answer]
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
	return &Cache{memory: memory, tables: memo.In(memory, weightOf[tableKey]), answers: memo.In(memory, weightOfAnswer)}
}

// Used is about how many bytes are taken of those that there may be.
func (c *Cache) Used() int64 { return c.memory.Used() }

// weighed is a value that takes about so many bytes.
type weighed struct {
	value any
	bytes int
	// keeps is the view whose devices the value keeps alive, nil for most. It counts once, whoever keeps it.
	keeps *view.View
}

func weightOf[K comparable](_ K, w *weighed) memo.Size {
	size := memo.Size{Bytes: w.bytes}
	if w.keeps != nil {
		size.Parts = []memo.Part{{Of: w.keeps, Bytes: w.keeps.Bytes()}}
	}
	return size
}

// Find returns what the entry has, or finds it out, and reports whether it was known.
func Find[K comparable, V any](ctx context.Context, entry *memo.Entry[K, V], create func() (V, error)) (value V, known bool, err error) {
	value, known, err = entry.Find(ctx, create)
	return value, known, Interrupted(ctx, err)
}

// Interrupted says what has ended waiting for what somebody else finds out.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, memo.ErrInterrupted) {
		return fmt.Errorf("filter operation aborted: %w", cel.ContextError(ctx))
	}
	return err
}

// tableKey has everything that a table depends on.
type tableKey struct {
	view view.ID
	kind tableKind
	// by is the environment of the text, or another object that the table depends on.
	by any
	// text is what the table is about, IsGoal and shape what is asked of it.
	text   fingerprint.Sum
	isGoal bool
	shape  definition.SetShape
}

type tableKind int8

const (
	// tableOfValues has the devices as values of expressions. It is about no text.
	tableOfValues tableKind = iota
	// tableOfSelectors has the verdicts of the selectors of a request on devices.
	tableOfSelectors
	// tableOfExpression has what a CEL constraint says of devices and pairs, for sets of one shape.
	tableOfExpression
	// tableOfVerdicts has the verdicts of a CEL constraint on sets.
	tableOfVerdicts
	// tableOfSymmetry has the classes of devices that are the same in the attributes of a read set.
	tableOfSymmetry
	// tableOfConflicts has the devices of an inventory that can't be had together. It is about no view.
	tableOfConflicts
	// tableOfSets has the sets that a claim could get if nothing were in use, for [shapeFeatures].
	tableOfSets
)

// shapeFeatures are what the sets of a shape depend on besides the claim.
type shapeFeatures struct {
	features    structured.Features
	environment *device.Environment
	// devices are nil for plain inventories, of which the claim reads all that there is.
	devices weak.Pointer[inventory.Inventory]
}

// tableAt returns a table if it is known. It spares what making one would have to be told.
func tableAt[T any](c *Cache, key tableKey) (table T, known bool) {
	if found := c.tables.At(key).Look(); found != nil {
		return found.value.(T), true
	}
	return table, false
}

// tableOf returns a table, which is made if it is not known. grown is called each time that it takes more bytes
// than it did.
func tableOf[T any](c *Cache, key tableKey, create func(grown func(bytes int)) (table T, bytes int)) T {
	return tableKeeping(c, key, func(grown func(int)) (table T, bytes int, keeps *view.View) {
		table, bytes = create(grown)
		return table, bytes, nil
	})
}

// tableKeeping is tableOf for tables that keep the devices of a view alive.
func tableKeeping[T any](c *Cache, key tableKey, create func(grown func(bytes int)) (table T, bytes int, keeps *view.View)) T {
	entry := c.tables.At(key)
	found, _, _ := entry.Find(context.Background(), func() (weighed, error) {
		table, bytes, keeps := create(entry.Grow)
		return weighed{table, bytes, keeps}, nil
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

// answerKey has everything that an answer depends on, for plain inventories.
type answerKey struct {
	view        view.ID
	features    structured.Features
	environment *device.Environment
	claims      fingerprint.Sum
	costBudget  uint64
	stepBudget  int64
	preferences budget.Budget
	// prefers tells that preferences are read.
	prefers bool
	reasons bool
	// inUse has a bit for each device.
	inUse string
}

func weightOfAnswer(key answerKey, a *answer.Answer) memo.Size {
	return memo.Size{Bytes: len(key.inUse) + a.Bytes()}
}

// AnswerEntry has an answer or room for it.
type AnswerEntry = memo.Entry[answerKey, answer.Answer]
