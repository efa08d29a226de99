// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "sync/atomic"

// A Derivation is the storage of a condition: data derived from all devices, which searches share, and memory for one search.
type Derivation struct {
	// index is the index in Tables.derived and in memory.ofConditions.
	index int
	// own is the storage of a condition that belongs to one search, otherwise nil.
	own *ownDerivation
}

// Shared returns the derivation with the index.
func Shared(index int) Derivation { return Derivation{index: index} }

// Owned returns a derivation for a condition that belongs to one search.
func Owned() Derivation { return Derivation{own: &ownDerivation{}} }

// IsOwned reports whether the condition belongs to one search.
func (d Derivation) IsOwned() bool { return d.own != nil }

// ownDerivation is the storage of a condition that belongs to one search.
type ownDerivation struct {
	derived atomic.Value
	memory  any
}

// Derived returns the data stored by Derive, or nil.
func (d Derivation) Derived(s *State) any {
	if d.IsOwned() {
		return d.own.derived.Load()
	}
	return s.tables.derived[d.index].Load()
}

// Derive stores derived data of the given size in bytes. Two searches may call it at the same time, because they derive equal
// data.
func (d Derivation) Derive(s *State, what any, bytes int) {
	if d.IsOwned() {
		d.own.derived.Store(what)
		return
	}
	if s.tables.derived[d.index].CompareAndSwap(nil, what) {
		s.tables.grow(bytes)
	}
}

// Memory returns the data that the condition keeps between calls of one search. The caller may replace it.
func (d Derivation) Memory(s *State) *any {
	if d.IsOwned() {
		return &d.own.memory
	}
	if s.ofConditions == nil {
		s.ofConditions = make([]any, len(s.tables.derived))
	}
	return &s.ofConditions[d.index]
}
