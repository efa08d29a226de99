// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"context"
	"unsafe"
)

// Memo holds the entries of one kind in a [Memory]. It is safe for concurrent use.
type Memo[K comparable, V any] struct {
	memory *Memory
	size   func(K, *V) Size
	// entryBytes is the size of an entry without the memory that its key and value point to.
	entryBytes int
	entries    map[K]*Entry[K, V]
	// most is the maximum number of entries since the map was created. It decides when to copy the map, because a Go map never
	// shrinks.
	most int
}

// In returns a Memo for a new kind of entries. size returns the memory that the key and the value point to, without the key and
// the value themselves. size is called once for each value.
func In[K comparable, V any](memory *Memory, size func(key K, value *V) Size) *Memo[K, V] {
	var slot struct {
		key   K
		entry *Entry[K, V]
	}
	// Count two slots of the map for each entry, because a map may be only half full.
	return &Memo[K, V]{memory: memory, size: size, entryBytes: int(unsafe.Sizeof(Entry[K, V]{}) + 2*unsafe.Sizeof(slot))}
}

// At returns the entry for the key. If there is no entry, At creates an entry without a value.
func (m *Memo[K, V]) At(key K) *Entry[K, V] {
	m.memory.mutex.Lock()
	defer m.memory.mutex.Unlock()
	if known := m.entries[key]; known != nil {
		m.memory.use(&known.element)
		return known
	}
	if m.entries == nil {
		m.entries = make(map[K]*Entry[K, V])
	}
	made := &Entry[K, V]{memo: m, key: key}
	made.owner = made
	m.entries[key] = made
	m.most = max(m.most, len(m.entries))
	m.memory.insert(&made.element)
	m.memory.charge(&made.element, m.entryBytes, nil)
	return made
}

// Has returns the entry for the key, or nil if there is no entry.
func (m *Memo[K, V]) Has(key K) *Entry[K, V] {
	m.memory.mutex.Lock()
	defer m.memory.mutex.Unlock()
	known := m.entries[key]
	if known != nil {
		m.memory.use(&known.element)
	}
	return known
}

// Get returns the value for the key. If there is no value, Get calls create, and other callers wait.
func (m *Memo[K, V]) Get(key K, create func() V) V {
	value, _, _ := m.At(key).Find(context.Background(), func() (V, error) { return create(), nil })
	return value
}

// Len returns the number of entries.
func (m *Memo[K, V]) Len() int {
	m.memory.mutex.Lock()
	defer m.memory.mutex.Unlock()
	return len(m.entries)
}

// smallMap is the number of entries below which copying the map to a smaller one would not save memory.
const smallMap = 64

// remove removes the entry with the key. The caller must hold the lock of the memory.
func (m *Memo[K, V]) remove(key K) {
	delete(m.entries, key)
	if m.most <= smallMap || len(m.entries) > m.most/2 {
		return
	}
	smaller := make(map[K]*Entry[K, V], len(m.entries))
	for key, entry := range m.entries {
		smaller[key] = entry
	}
	m.entries, m.most = smaller, len(smaller)
}
