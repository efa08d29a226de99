// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"context"
	"slices"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// A Condition is a part of an expression with type bool. Its results hold for every completion of the state's partial set. A
// condition may also have a propagator ([propagator]) and a negation (package condition).
type Condition interface {
	// Bound returns a set of results that includes the result of every completion. Bound does not change the state.
	Bound(s *State) outcome.Outcome
}

// A Quantity is a part of an expression with type int.
type Quantity interface {
	Number(s *State) outcome.Number
}

// Open is a part of an expression that package read does not support. It may have any value.
type Open struct{}

// Bound returns all outcomes.
func (Open) Bound(*State) outcome.Outcome { return outcome.Open }

// Number returns bounds that include every int.
func (Open) Number(*State) outcome.Number { return outcome.OpenNumber }

// Negation returns the same condition, because the negation of an open condition is open.
func (n Open) Negation() Condition { return n }

// IsOpen reports whether a condition or a quantity is Open.
func IsOpen(node any) bool {
	_, is := node.(Open)
	return is
}

// Status is the result of propagating a condition. The values have the same names as in the Gecode library.
type Status int

const (
	// Failed means that the condition is false in every completion.
	Failed Status = iota
	// NoFix means that propagating the condition again might remove or require further devices.
	NoFix
	// Fix means that propagating the condition again changes nothing until another condition changes the state.
	Fix
	// Subsumed means that the condition is true in every completion.
	Subsumed
)

// A propagator is a condition with its own algorithm for removing devices.
type propagator interface {
	Condition
	// Propagate removes a device from s.Domain if choosing the device makes the condition false. It may also require devices
	// that every satisfying completion contains, unless s.Hypothetical is set. Then the condition need not hold.
	Propagate(s *State) Status
}

// StatusOf converts the bound of a condition without a propagator to a status.
func StatusOf(bound outcome.Outcome) Status {
	switch bound {
	case outcome.False:
		return Failed
	case outcome.True:
		return Subsumed
	default:
		return Fix
	}
}

// A Partial is a partial set: some devices are chosen, some may be added. A device is its index in the tabulated list.
type Partial struct {
	// Chosen has the devices in the set. Domain has the devices that may be added. The two are disjoint.
	Chosen, Domain bitset.Set
	// Left is the number of devices that must still be chosen from Domain.
	Left int
	// Forced receives the devices of Domain that every completion contains, except completions that are false. Infeasible fills
	// Forced unless it is nil.
	Forced bitset.Set
	// AtFixpoint means that Infeasible has already processed a partial set with the same devices in Chosen and Domain together.
	// Since then, devices have only moved from Domain to Chosen.
	AtFixpoint bool
}

// A Problem is an expression as conditions for the search: conjuncts that a set must satisfy, or a goal to maximize.
type Problem struct {
	// Usable means that bounds are valid, because each part that may abort has a guard. If it is false, there are no bounds.
	Usable bool
	// Conjuncts has the conjuncts that depend on the set. Provable means that no conjunct is open.
	Conjuncts []Condition
	Provable  bool
	// Goal is the preference's value, for a problem without conjuncts. Above returns the condition that Goal exceeds a value.
	Goal  Quantity
	Above func(value int64) Condition

	// Leaves and Predicates have one table each in Tables. Derivations counts the conditions that have a [Derivation].
	Leaves      []*Leaf
	Predicates  []Tabulated
	Derivations int
	Guards      []Guard
	// Slots is the number of iteration variables over devices. Each variable has a slot.
	Slots int
}

// Fits reports whether the tables for this number of devices, before on-demand entries, fit into maxBytes.
func (p *Problem) Fits(devices int) bool {
	each := len(p.Leaves)*entryBytes + len(p.Predicates)*2*MaxArity*pointerBytes
	return devices <= maxBytes/max(1, each)
}

// A State is a partial set while conditions evaluate and propagate it. Its fields are grouped by the phase that fills them.
type State struct {
	// Partial is the partial set. Propagation removes and chooses devices in it.
	Partial
	// Slots maps the number of an iteration variable (its slot) to the device that the variable currently has.
	Slots []int

	search
	call
	propagation
	evaluation
	memory
}

// search is set when a search begins. Only Conjuncts may change later: a preference replaces its condition for each better
// value.
type search struct {
	// Conjuncts are the conjuncts of the problem. For a preference, the only conjunct is that the goal exceeds a value.
	Problem   *Problem
	tables    *Tables
	Conjuncts []Condition
	// parts is empty unless each complete set has a fixed number of devices of each part.
	parts  []Part
	ctx    context.Context
	budget *cel.Budget
}

// call is reset at the start of each call of Bound, Infeasible or Most.
type call struct {
	// work counts the devices that the call has visited.
	work int
	// aborted means that the call read an entry that aborts the evaluation of the whole expression in CEL.
	aborted bool
	// fixpoint is the number of chosen and possible devices at the last fixpoint, or -1 if there was none.
	fixpoint int
}

// propagation holds the progress of propagation within a call.
type propagation struct {
	// active holds the conjuncts that are not yet subsumed.
	active []Condition
	// Removed is set when a device leaves the domain, because it is removed or because it is chosen as required.
	Removed bool
	// forced has the devices that propagation chose, because every completion without them is false.
	forced bitset.Set
	// Hypothetical means that the propagated condition need not hold, so propagators must not require devices.
	Hypothetical bool
	// Shallow means that quantifiers visit only chosen devices, which is cheaper and less precise.
	Shallow bool
	// Lacking has a row for each chosen device that needs all but one of the devices left to choose (see cardinality).
	Lacking []*Row
}

// evaluation counts the use of CEL during the whole search.
type evaluation struct {
	// Evaluations counts calls of CEL. Builds counts the tables that this search started. Err says why CEL could not be called.
	Evaluations, Builds int64
	Err                 error
	// Exhausted means that a call exceeded maxWork, the tables exceeded maxBytes, or the context ended. All later results are
	// open.
	Exhausted bool
}

// memory is scratch memory. Conditions use it one after the other.
type memory struct {
	// before holds the domain as it was at the start of the call.
	before bitset.Set
	// initial is preallocated memory for spare and Slots. It is large enough for most expressions.
	initial struct {
		sets  [4]bitset.Set
		slots [4]int
	}
	// spare has unused sets for Borrow. spareRows has one set for each device (Rows). spareWords is memory for Words.
	spare      []bitset.Set
	spareRows  []bitset.Set
	spareWords []uint64
	// SpareGraph is the memory of condition.successors, a graph of devices and their successors.
	SpareGraph any
	// settled maps Predicate.Index to a set of devices. The predicate is decided (true or false) for any two devices of the
	// set.
	settled []bitset.Set
	// ofConditions maps Derivation.index to the memory that the condition keeps between calls of the search.
	ofConditions []any
}

// Work and memory are limited, because users write the expressions and drivers write the devices, and neither is trusted. The
// cost of nested quantifiers is the number of devices to the power of the nesting depth.
const (
	// maxBytes is the approximate limit for the memory of an expression's tables.
	maxBytes = 16 << 20
	// entryBytes is the approximate memory of one entry of a leaf. pointerBytes is the size of a pointer.
	entryBytes, pointerBytes = 64, 8
	// maxWork is the number of devices that one call of Infeasible or Bound may visit. This takes some ten milliseconds.
	maxWork = 1 << 18
	// workBetween is the number of devices visited between two checks of the context. The time per device varies by expression.
	workBetween = 1 << 6
)

// devices returns the number of chosen and possible devices.
func (s *State) devices() int { return s.Chosen.Count() + s.Domain.Count() }

// Spend counts one visited device. It returns false if the call exceeds maxWork or the context has ended. After that, every
// result is open.
func (s *State) Spend() bool {
	s.work++
	s.Exhausted = s.Exhausted || s.work > maxWork || s.work%workBetween == 0 && s.ctx.Err() != nil
	return !s.Exhausted
}

// Borrow returns a copy of a set in reused memory. The caller must release the copy with GiveBack.
func (s *State) Borrow(of bitset.Set) bitset.Set {
	if n := len(s.spare); n > 0 {
		result := s.spare[n-1]
		s.spare = s.spare[:n-1]
		result.SetTo(of)
		return result
	}
	return slices.Clone(of)
}

// Universe returns the number of tabulated devices.
func (s *State) Universe() int { return len(s.tables.devices) }

// IsAtFixpoint reports whether no device was removed since the last fixpoint. It compares the number of devices.
func (s *State) IsAtFixpoint() bool { return s.fixpoint == s.devices() }

// AddWork counts visited devices. Once the sum exceeds maxWork, later results are open.
func (s *State) AddWork(count int) { s.work += count }

// GiveBack releases a set that Borrow returned.
func (s *State) GiveBack(b bitset.Set) { s.spare = append(s.spare, b) }

// Propagate runs the condition's propagator. For a condition without a propagator, it only computes the bound.
func (s *State) Propagate(c Condition) Status {
	if p, ok := c.(propagator); ok {
		return p.Propagate(s)
	}
	return StatusOf(c.Bound(s))
}

// Choose moves a device from the domain to the chosen devices.
func (s *State) Choose(device int) {
	s.Domain.Remove(device)
	s.Chosen.Add(device)
	s.Left--
}

// Unchoose undoes the last call of Choose, for the same device.
func (s *State) Unchoose(device int) {
	s.Left++
	s.Chosen.Remove(device)
	s.Domain.Add(device)
}

// Remove removes a device from the domain.
func (s *State) Remove(device int) {
	s.Domain.Remove(device)
	s.Removed = true
}

// Require chooses the possible devices of the given set, because every completion without them is false.
func (s *State) Require(devices bitset.Set) {
	s.Left -= devices.CountAnd(s.Domain)
	for w, word := range devices {
		word &= s.Domain[w]
		s.Domain[w] &^= word
		s.Chosen[w] |= word
		s.forced[w] |= word
	}
	s.Removed = true
}

// Keep removes the devices outside the set from the domain.
func (s *State) Keep(devices bitset.Set) { s.Removed = s.Domain.Keep(devices) || s.Removed }

// Drop removes the devices of the set from the domain.
func (s *State) Drop(devices bitset.Set) { s.Removed = s.Domain.Drop(devices) || s.Removed }

// AreWithin reports whether a set contains all chosen and possible devices.
func (s *State) AreWithin(devices bitset.Set) bool {
	return s.Chosen.IsWithin(devices) && (s.Left <= 0 || s.Domain.IsWithin(devices))
}

// CountsOf returns the numbers of chosen and of possible devices in the set.
func (s *State) CountsOf(of bitset.Set) (chosen, possible int) {
	return of.CountAnd(s.Chosen), of.CountAnd(s.Domain)
}

// Rows returns reused memory with one set for each device. The memory is valid until the next call.
func (s *State) Rows() []bitset.Set {
	if s.spareRows == nil {
		n := len(s.tables.devices)
		list := bitset.NewList(n, n)
		s.spareRows = make([]bitset.Set, n)
		for i := range s.spareRows {
			s.spareRows[i] = list.At(i)
		}
	}
	return s.spareRows
}

// Words returns reused memory for words of bits. The memory is valid until the next call.
func (s *State) Words(count int) []uint64 {
	if len(s.spareWords) < count {
		s.spareWords = make([]uint64, count)
	}
	return s.spareWords[:count]
}

// IsRefutedBy reports whether c is false in every completion that contains the possible device.
func (s *State) IsRefutedBy(c Condition, device int) bool {
	s.Choose(device)
	refuted := c.Bound(s) == outcome.False || s.Domain.Count() < s.Left
	s.Unchoose(device)
	return refuted
}

// IsSound reports whether the results since Begin are valid: nothing aborted, no limit was exceeded, and CEL could be called.
func (s *State) IsSound() bool { return !s.aborted && !s.Exhausted && s.Err == nil }
