// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"sync"

	"github.com/celset/celset/cel"
)

// memo keeps one result. Of several who need it at the same time one finds it out while
// the others wait, as long as their contexts permit. The zero value is ready.
type memo[V any] struct {
	mutex sync.Mutex
	// found: value is the result.
	found bool
	value V
	// isBeingFound: it is somebody's turn. The others wait until done, which the first of
	// them makes, is closed, and then take turns again.
	isBeingFound bool
	done         chan struct{}
}

func newMemo[V any]() *memo[V] { return new(memo[V]) }

// get returns the value, and whether it was known. find is called if it is not. What
// find returns is kept unless it is not sure or an error.
func (m *memo[V]) get(ctx context.Context, find func() (value V, sure bool, err error)) (value V, known bool, err error) {
	for {
		done, known := m.begin()
		if known {
			return m.value, true, nil
		}
		if done == nil {
			break
		}
		select {
		case <-done:
		case <-ctx.Done():
			return value, false, fmt.Errorf("filter operation aborted: %w", cel.ContextError(ctx))
		}
	}
	sure := false
	defer func() { m.end(value, err == nil && sure) }()
	value, sure, err = find()
	return value, false, err
}

// begin tells whether the value is known. If not it is the caller's turn to find it, or,
// with a channel, that of somebody else who is done when it is closed.
func (m *memo[V]) begin() (done <-chan struct{}, known bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.found || !m.isBeingFound {
		m.isBeingFound = !m.found
		return nil, m.found
	}
	if m.done == nil {
		m.done = make(chan struct{})
	}
	return m.done, false
}

// end ends a turn, with a value if one was found.
func (m *memo[V]) end(value V, found bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.value, m.found, m.isBeingFound = value, found, false
	if m.done != nil {
		close(m.done)
		m.done = nil
	}
}
