// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "sync/atomic"

// Derivation is the place for what a condition derives from the values of all devices, shared by searches, and for its
// memory in one search.
type Derivation struct {
	// index is the place in Tables.derived and in memory.ofConditions.
	index int
	// own is the place if the condition belongs to one search, otherwise nil.
	own *ownDerivation
}

// Shared returns the place with an index.
func Shared(index int) Derivation { return Derivation{index: index} }

// Owned returns the place of a condition that belongs to one search.
func Owned() Derivation { return Derivation{own: &ownDerivation{}} }

// IsOwned reports whether the condition belongs to one search.
func (d Derivation) IsOwned() bool { return d.own != nil }

// ownDerivation is the place of a condition that belongs to one search.
type ownDerivation struct {
	derived atomic.Value
	memory  any
}

// Derived returns what was derived before, nil if nothing was.
func (d Derivation) Derived(s *State) any {
	if d.IsOwned() {
		return d.own.derived.Load()
	}
	return s.tables.derived[d.index].Load()
}

// Derive stores what was derived, which takes some bytes. Two searches may both get here: they derive the same.
func (d Derivation) Derive(s *State, what any, bytes int) {
	if d.IsOwned() {
		d.own.derived.Store(what)
		return
	}
	if s.tables.derived[d.index].CompareAndSwap(nil, what) {
		s.tables.grow(bytes)
	}
}

// Memory returns the place for what the condition remembers from one call to the next.
func (d Derivation) Memory(s *State) *any {
	if d.IsOwned() {
		return &d.own.memory
	}
	if s.ofConditions == nil {
		s.ofConditions = make([]any, len(s.tables.derived))
	}
	return &s.ofConditions[d.index]
}
