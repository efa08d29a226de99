// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"sync/atomic"
	"unsafe"
)

// Slot caches one value for an object that lives longer than the value. The object holds the slot, so no key is needed. A full
// memory drops the value as it drops entries. A Slot is a separate allocation: the memory points to the slot and must not keep
// the object alive.
type Slot[V any] struct {
	element
	memory *Memory
	value  atomic.Pointer[V]
}

// NewSlot returns a slot without a value.
func NewSlot[V any](memory *Memory) *Slot[V] {
	s := &Slot[V]{memory: memory}
	s.owner = s
	return s
}

// Look returns the value, or nil if the slot is empty.
func (s *Slot[V]) Look() *V {
	value := s.value.Load()
	if value != nil {
		s.memory.mutex.Lock()
		defer s.memory.mutex.Unlock()
		s.memory.use(&s.element)
	}
	return value
}

// Keep replaces the value. size is the memory that the new value points to.
func (s *Slot[V]) Keep(value *V, size Size) {
	s.memory.mutex.Lock()
	defer s.memory.mutex.Unlock()
	if s.isStored() {
		s.memory.drop(&s.element)
	}
	s.value.Store(value)
	s.memory.insert(&s.element)
	s.memory.charge(&s.element, int(unsafe.Sizeof(*s)+unsafe.Sizeof(*value))+size.Bytes, size.Parts)
}

// Forget empties the slot.
func (s *Slot[V]) Forget() {
	s.memory.mutex.Lock()
	defer s.memory.mutex.Unlock()
	if s.isStored() {
		s.memory.drop(&s.element)
	}
}

// dropped implements owner: the memory calls it when it drops the value.
func (s *Slot[V]) dropped() { s.value.Store(nil) }
