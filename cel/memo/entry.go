// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrInterrupted is returned by [Entry.Find] if the context ended while another caller was computing the value.
var ErrInterrupted = errors.New("interrupted while another caller computes the same value")

// Entry holds one value, or has no value yet. It may be used after the memory has dropped it.
type Entry[K comparable, V any] struct {
	element
	memo *Memo[K, V]
	key  K
	// hasValue is set after value. Both never change again.
	hasValue atomic.Bool
	value    V
	// isComputing is true while a caller computes the value. The other callers wait until done is closed, and then compete again.
	// The first waiting caller creates done. The mutex of the memory guards both.
	isComputing bool
	done        chan struct{}
}

// Look returns the value, or nil if it is missing.
func (e *Entry[K, V]) Look() *V {
	if e.hasValue.Load() {
		return &e.value
	}
	return nil
}

// Find returns the value. known reports whether it was already there. Otherwise Find calls find, or waits if another caller is
// computing the value. It stores the result of find unless there is an error.
func (e *Entry[K, V]) Find(ctx context.Context, find func() (V, error)) (value V, known bool, err error) {
	for {
		if kept := e.Look(); kept != nil {
			return *kept, true, nil
		}
		busy := e.begin()
		if busy == nil {
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return value, false, ErrInterrupted
		}
	}
	defer e.end()
	if kept := e.Look(); kept != nil {
		return *kept, true, nil
	}
	if value, err = find(); err == nil {
		e.value = value
		e.hasValue.Store(true)
		e.count()
	}
	return value, false, err
}

// Grow records that the value has grown by a number of bytes.
func (e *Entry[K, V]) Grow(bytes int) {
	m := e.memo.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.charge(&e.element, bytes, nil)
}

func (e *Entry[K, V]) count() {
	size, m := e.memo.size(e.key, &e.value), e.memo.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.charge(&e.element, size.Bytes, size.Parts)
}

// begin reserves the computation for the caller. If another caller is computing, begin returns a channel that is closed
// afterwards.
func (e *Entry[K, V]) begin() (busy <-chan struct{}) {
	m := e.memo.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !e.isComputing {
		e.isComputing = true
		return nil
	}
	if e.done == nil {
		e.done = make(chan struct{})
	}
	return e.done
}

// end ends the computation and wakes the waiting callers.
func (e *Entry[K, V]) end() {
	m := e.memo.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	e.isComputing = false
	if e.done != nil {
		close(e.done)
		e.done = nil
	}
}

// dropped implements owner.
func (e *Entry[K, V]) dropped() { e.memo.remove(e.key) }
