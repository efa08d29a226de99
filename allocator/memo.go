// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/celset/celset/cel"
)

// memo keeps one result. Of several who need it at the same time one finds it out while
// the others wait, as long as their contexts permit.
type memo[V any] struct {
	// turn has room for the one whose turn it is.
	turn chan struct{}
	// kept is nil until it is known.
	kept atomic.Pointer[V]
}

func newMemo[V any]() *memo[V] { return &memo[V]{turn: make(chan struct{}, 1)} }

// look returns the value if it is known, else nil.
func (m *memo[V]) look() *V { return m.kept.Load() }

// get returns the value, and whether it was known. find is called if it is not. What
// find returns is kept unless it is not sure or an error.
func (m *memo[V]) get(ctx context.Context, find func() (value V, sure bool, err error)) (value V, known bool, err error) {
	if kept := m.look(); kept != nil {
		return *kept, true, nil
	}
	select {
	case m.turn <- struct{}{}:
	default:
		select {
		case m.turn <- struct{}{}:
		case <-ctx.Done():
			return value, false, fmt.Errorf("filter operation aborted: %w", cel.ContextError(ctx))
		}
	}
	defer func() { <-m.turn }()
	if kept := m.look(); kept != nil {
		return *kept, true, nil
	}
	value, sure, err := find()
	if err == nil && sure {
		m.kept.Store(&value)
	}
	return value, false, err
}
