// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/celset/celset/cel"
)

// memo keeps one result. Of several who need it at the same time one finds it out while
// the others wait, as long as their contexts permit. The zero value is ready.
type memo[V any] struct {
	// isKnown is set after value, and both never change again.
	isKnown atomic.Bool
	value   V
	// mutex guards what follows.
	mutex sync.Mutex
	// isBeingFound: it is somebody's turn. The others wait until done, which the first of
	// them makes, is closed, and then take turns again.
	isBeingFound bool
	done         chan struct{}
}

func newMemo[V any]() *memo[V] { return new(memo[V]) }

// look returns the value if it is known, else nil.
func (m *memo[V]) look() *V {
	if m.isKnown.Load() {
		return &m.value
	}
	return nil
}

// get returns the value, and whether it was known. find is called if it is not. What
// find returns is kept unless it is not sure or an error.
func (m *memo[V]) get(ctx context.Context, find func() (value V, sure bool, err error)) (value V, known bool, err error) {
	for {
		if kept := m.look(); kept != nil {
			return *kept, true, nil
		}
		busy := m.begin()
		if busy == nil {
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return value, false, fmt.Errorf("filter operation aborted: %w", cel.ContextError(ctx))
		}
	}
	defer m.end()
	if kept := m.look(); kept != nil {
		return *kept, true, nil
	}
	value, sure, err := find()
	if err == nil && sure {
		m.value = value
		m.isKnown.Store(true)
	}
	return value, false, err
}

// begin takes the turn, or returns a channel that is closed when it may be free.
func (m *memo[V]) begin() (busy <-chan struct{}) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.isBeingFound {
		m.isBeingFound = true
		return nil
	}
	if m.done == nil {
		m.done = make(chan struct{})
	}
	return m.done
}

// end ends the turn.
func (m *memo[V]) end() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.isBeingFound = false
	if m.done != nil {
		close(m.done)
		m.done = nil
	}
}
