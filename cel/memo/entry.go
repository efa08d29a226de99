// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrInterrupted is returned by [Entry.Find] if the context ended while somebody else was
// finding out.
var ErrInterrupted = errors.New("interrupted while waiting for what somebody else finds out")

// Entry has one value, or has room for it. Who has got it may use it also when it is not
// kept any more.
type Entry[K comparable, V any] struct {
	element
	memo *Memo[K, V]
	key  K
	// isKnown is set after value, and both never change again.
	isKnown atomic.Bool
	value   V
	// isBeingFound: it is somebody's turn. The others wait until done, which the first of
	// them makes, is closed, and then take turns again. The mutex of the memory guards both.
	isBeingFound bool
	done         chan struct{}
}

// Look returns the value if it is known, else nil.
func (e *Entry[K, V]) Look() *V {
	if e.isKnown.Load() {
		return &e.value
	}
	return nil
}

// Find returns the value, and whether it was known. If it is not, find is called, unless
// somebody else is about to find out: then that is waited for. What find returns is kept if
// there is no error.
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
		e.isKnown.Store(true)
		e.count()
	}
	return value, false, err
}

// Grow says that the value takes more bytes than it did when it was found.
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

// begin takes the turn, or returns a channel that is closed when it may be free.
func (e *Entry[K, V]) begin() (busy <-chan struct{}) {
	m := e.memo.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !e.isBeingFound {
		e.isBeingFound = true
		return nil
	}
	if e.done == nil {
		e.done = make(chan struct{})
	}
	return e.done
}

// end ends the turn.
func (e *Entry[K, V]) end() {
	m := e.memo.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	e.isBeingFound = false
	if e.done != nil {
		close(e.done)
		e.done = nil
	}
}

// dropped implements owner.
func (e *Entry[K, V]) dropped() { e.memo.remove(e.key) }
