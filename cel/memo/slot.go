// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"sync/atomic"
	"unsafe"
)

// Slot caches one value for an object that outlives the value. The object holds the slot, so that no key is needed. A full memory
// drops the value like others. A Slot is a separate allocation, because the memory holds the slot and must not hold the object.
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

// Look returns the value, or nil.
func (s *Slot[V]) Look() *V {
	value := s.value.Load()
	if value != nil {
		s.memory.mutex.Lock()
		defer s.memory.mutex.Unlock()
		s.memory.use(&s.element)
	}
	return value
}

// Keep replaces the value. size is the size of the memory that the value points to.
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

// dropped implements owner.
func (s *Slot[V]) dropped() { s.value.Store(nil) }
