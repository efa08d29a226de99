// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "sync/atomic"

// A Derivation gives a condition two kinds of storage: data derived from all devices, shared by all searches, and memory for
// one search.
type Derivation struct {
	// index is the index in Tables.derived and in memory.ofConditions.
	index int
	// own is the storage of a condition that only one search uses. It is nil for other conditions.
	own *ownDerivation
}

// Shared returns the derivation of a condition that several searches use.
func Shared(index int) Derivation { return Derivation{index: index} }

// Owned returns a derivation for a condition that only one search uses.
func Owned() Derivation { return Derivation{own: &ownDerivation{}} }

// IsOwned reports whether only one search uses the condition.
func (d Derivation) IsOwned() bool { return d.own != nil }

// ownDerivation is the storage of a condition that only one search uses.
type ownDerivation struct {
	derived atomic.Value
	memory  any
}

// Derived returns the data that Derive stored, or nil.
func (d Derivation) Derived(s *State) any {
	if d.IsOwned() {
		return d.own.derived.Load()
	}
	return s.tables.derived[d.index].Load()
}

// Derive stores data derived from all devices. bytes is the size of the data. Concurrent calls of two searches are safe,
// because both searches derive equal data.
func (d Derivation) Derive(s *State, what any, bytes int) {
	if d.IsOwned() {
		d.own.derived.Store(what)
		return
	}
	if s.tables.derived[d.index].CompareAndSwap(nil, what) {
		s.tables.grow(bytes)
	}
}

// Memory returns a pointer to data that the condition keeps between the calls of one search. The caller may replace the data.
func (d Derivation) Memory(s *State) *any {
	if d.IsOwned() {
		return &d.own.memory
	}
	if s.ofConditions == nil {
		s.ofConditions = make([]any, len(s.tables.derived))
	}
	return &s.ofConditions[d.index]
}
