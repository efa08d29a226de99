// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "sync/atomic"

// derivation is the place for what a condition derives from the values of all devices, once for all searches, and for its memory
// in one search.
type derivation struct {
	// index is the place in tables.derived and in memory.ofConditions.
	index int
	// own is the place if the condition belongs to one search, otherwise nil.
	own *ownDerivation
}

// sharedDerivation is the place with an index. ownedDerivation is that of a condition that belongs to one search.
func sharedDerivation(index int) derivation { return derivation{index: index} }

func ownedDerivation() derivation { return derivation{own: &ownDerivation{}} }

// isOwned reports whether the condition belongs to one search.
func (d derivation) isOwned() bool { return d.own != nil }

// ownDerivation is the place of a condition that belongs to one search.
type ownDerivation struct {
	derived atomic.Value
	memory  any
}

// derived returns what was derived before, nil if nothing was.
func (d derivation) derived(s *state) any {
	if d.isOwned() {
		return d.own.derived.Load()
	}
	return s.tables.derived[d.index].Load()
}

// derive stores what was derived, which takes some bytes. Two searches may both get here: they derive the same.
func (d derivation) derive(s *state, what any, bytes int) {
	if d.isOwned() {
		d.own.derived.Store(what)
		return
	}
	if s.tables.derived[d.index].CompareAndSwap(nil, what) {
		s.tables.grow(bytes)
	}
}

// memory returns the place for what the condition remembers from one call to the next.
func (d derivation) memory(s *state) *any {
	if d.isOwned() {
		return &d.own.memory
	}
	if s.ofConditions == nil {
		s.ofConditions = make([]any, len(s.tables.derived))
	}
	return &s.ofConditions[d.index]
}
