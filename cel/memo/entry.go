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

// Entry has one value, or no value yet. It may still be used after the memory has dropped it.
type Entry[K comparable, V any] struct {
	element
	memo *Memo[K, V]
	key  K
	// hasValue is set after value was set. Neither changes again.
	hasValue atomic.Bool
	value    V
	// isComputing means that a caller computes the value. Other callers wait until done is closed, and then compete for the
	// computation. The first waiting caller creates done. The mutex of the memory guards both fields.
	isComputing bool
	done        chan struct{}
}

// Look returns the value, or nil if the entry has no value yet.
func (e *Entry[K, V]) Look() *V {
	if e.hasValue.Load() {
		return &e.value
	}
	return nil
}

// Find returns the value. known reports whether the entry already had the value. Otherwise Find calls find, or waits if another
// caller computes the value. Find stores the value that find returns, unless find returns an error.
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

// Grow records that the value now takes more bytes.
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

// begin reserves the computation for the caller and returns nil. If another caller computes the value, begin instead returns a
// channel that is closed when that computation ends.
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

// dropped implements owner: the memory calls it when it drops the entry.
func (e *Entry[K, V]) dropped() { e.memo.remove(e.key) }
