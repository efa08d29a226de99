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

// A Condition is a part of an expression with type bool. Its results hold for every completion of the partial set in a state, as
// the package comment promises. A condition may also implement propagation ([propagator]) and negation (package condition).
type Condition interface {
	// Bound returns the possible results, and perhaps more. It does not change the state.
	Bound(s *State) outcome.Outcome
}

// A Quantity is a part of an expression with type int.
type Quantity interface {
	Number(s *State) outcome.Number
}

// Open is a part of an expression that the reader does not understand.
type Open struct{}

// Bound returns the outcome that includes every result.
func (Open) Bound(*State) outcome.Outcome { return outcome.Open }

// Number returns the number that includes every value.
func (Open) Number(*State) outcome.Number { return outcome.OpenNumber }

// Negation returns the same condition, because the negation is open, too.
func (n Open) Negation() Condition { return n }

// IsOpen reports whether a condition or a quantity is open.
func IsOpen(node any) bool {
	_, is := node.(Open)
	return is
}

// Status is the result of propagating a condition. The names are Gecode's.
type Status int

const (
	// Failed means that the condition is false in every completion.
	Failed Status = iota
	// NoFix means that propagating once more might remove or require a device.
	NoFix
	// Fix means that propagating once more changes nothing, unless another condition changes the state first.
	Fix
	// Subsumed means that the condition is true for every choice of devices from the domain.
	Subsumed
)

// A propagator is a condition with its own algorithm for removing devices.
type propagator interface {
	Condition
	// Propagate removes devices from s.Domain that make the condition false if they are chosen. It may also require devices that
	// are in every completion that satisfies the condition, unless s.Hypothetical is set: then the condition need not hold.
	Propagate(s *State) Status
}

// StatusOf returns the status of a condition that removes no devices.
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

// A Partial is a set that is partly chosen. A device is its index in the tabulated list.
type Partial struct {
	// Chosen has the devices in the set. Domain has the devices that may be added. The two are disjoint.
	Chosen, Domain bitset.Set
	// Left is the number of devices that must still be added.
	Left int
	// Forced receives the devices of the domain that are in every completion that is not false. Infeasible fills it, unless it is
	// nil.
	Forced bitset.Set
	// AtFixpoint means that Infeasible has processed a partial set with the same devices. Since then, devices only moved from Domain
	// to Chosen.
	AtFixpoint bool
}

// A Problem holds the conjuncts that a set must satisfy, or the goal to maximize, and the parts that need tables.
type Problem struct {
	// Usable means that CEL absorbs every error as it should. There are no bounds otherwise.
	Usable bool
	// Conjuncts leaves out conjuncts that are true for every set. Provable means that no conjunct is open.
	Conjuncts []Condition
	Provable  bool
	// Goal is the value of a preference. It replaces the conjuncts. Above returns the condition that Goal exceeds a value.
	Goal  Quantity
	Above func(value int64) Condition

	// Leaves and Predicates each have a table. Derivations counts the conditions that have a [Derivation].
	Leaves      []*Leaf
	Predicates  []Tabulated
	Derivations int
	Guards      []Guard
	// Slots is the number of iteration variables over devices.
	Slots int
}

// Fits reports whether the initial tables for this number of devices fit into maxBytes.
func (p *Problem) Fits(devices int) bool {
	each := len(p.Leaves)*entryBytes + len(p.Predicates)*2*MaxArity*pointerBytes
	return devices <= maxBytes/max(1, each)
}

// A State is a partial set during an evaluation. Its fields are grouped by the phase that fills them.
type State struct {
	// Partial is the partial set. Propagation changes it.
	Partial
	// Iteration variables over devices are numbered. Slots maps the number of a variable, its slot, to the variable's current
	// device.
	Slots []int

	search
	call
	propagation
	evaluation
	memory
}

// search is set when a search begins. Only Conjuncts may change later: a goal gets a new condition for each value to exceed.
type search struct {
	// Conjuncts are the conjuncts of the problem. For a goal, they are the single condition that the goal exceeds a value.
	Problem   *Problem
	tables    *Tables
	Conjuncts []Condition
	// parts is empty unless each complete set has a fixed number of devices of each part.
	parts  []Part
	ctx    context.Context
	budget *cel.Budget
}

// call is set at the start of each call of Bound, Infeasible or Most.
type call struct {
	// work counts the devices that this call has visited.
	work int
	// aborted means that this call met a part that ends the whole evaluation in CEL. No other part absorbs its error.
	aborted bool
	// fixpoint is the number of chosen and possible devices at the last fixpoint, or -1 if there was none.
	fixpoint int
}

// propagation is filled during propagation.
type propagation struct {
	// active holds the conjuncts that are not yet subsumed.
	active []Condition
	// Removed is set when a device leaves the domain because it is removed or required.
	Removed bool
	// forced has the devices that were chosen because every completion that is not false needs them.
	forced bitset.Set
	// Hypothetical means that the propagated condition need not hold.
	Hypothetical bool
	// Shallow means that quantifiers visit chosen devices only. This is cheaper and less precise.
	Shallow bool
	// Lacking has a row for each chosen device whose condition needs all but one of the devices left to choose.
	Lacking []*Row
}

// evaluation is filled with the tables. It lasts for the whole search.
type evaluation struct {
	// Evaluations counts the calls of CEL, Builds the tables that were started. Err is the reason why CEL could not be called.
	Evaluations, Builds int64
	Err                 error
	// Exhausted means that a call exceeded its work, or the tables their memory, or that the context ended.
	Exhausted bool
}

// memory is scratch memory that conditions use one after the other.
type memory struct {
	// before is the domain at the start of a call.
	before bitset.Set
	// initial is the initial memory of spare and Slots. It is enough for most conditions.
	initial struct {
		sets  [4]bitset.Set
		slots [4]int
	}
	// spare holds unused sets, spareRows one set for each device, and spareWords sets of bits.
	spare      []bitset.Set
	spareRows  []bitset.Set
	spareWords []uint64
	// SpareGraph is the memory of the constraint that links devices with their successors.
	SpareGraph any
	// settled maps Predicate.Index to a set of devices. For any two devices of the set, the predicate is either true or false.
	settled []bitset.Set
	// ofConditions holds the memory of conditions, by Derivation.index.
	ofConditions []any
}

// The work and memory of bounds are limited, because expressions and devices are untrusted. The cost of nested quantifiers is the
// number of devices to the power of their depth.
const (
	// maxBytes is the approximate limit for the memory of an expression's tables.
	maxBytes = 16 << 20
	// entryBytes is the approximate memory of an entry of a leaf.
	entryBytes, pointerBytes = 64, 8
	// maxWork is the number of devices that one call of Infeasible or Bound may visit. That takes some ten milliseconds.
	maxWork = 1 << 18
	// workBetween is the number of devices visited between two checks of the context. The time per device varies by expression.
	workBetween = 1 << 6
)

// devices returns the number of chosen and possible devices.
func (s *State) devices() int { return s.Chosen.Count() + s.Domain.Count() }

// Spend counts one visited device. It returns false if the work of the call is used up or the context has ended. Every result is
// open after that.
func (s *State) Spend() bool {
	s.work++
	s.Exhausted = s.Exhausted || s.work > maxWork || s.work%workBetween == 0 && s.ctx.Err() != nil
	return !s.Exhausted
}

// Borrow returns a copy of a set. The caller returns it with GiveBack.
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

// IsAtFixpoint reports whether the number of devices is the same as at the last fixpoint.
func (s *State) IsAtFixpoint() bool { return s.fixpoint == s.devices() }

// AddWork counts visited devices. If the limit is exceeded, later results are open.
func (s *State) AddWork(count int) { s.work += count }

// GiveBack takes back a borrowed set.
func (s *State) GiveBack(b bitset.Set) { s.spare = append(s.spare, b) }

// Propagate runs the condition's propagator. A condition without a propagator removes nothing.
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

// Unchoose undoes the last Choose.
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

// Require chooses the devices of a set that are in the domain, because every completion that is not false needs them.
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

// Rows returns memory with one set for each device. It is valid until the next call.
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

// Words returns memory for words of bits. It is valid until the next call.
func (s *State) Words(count int) []uint64 {
	if len(s.spareWords) < count {
		s.spareWords = make([]uint64, count)
	}
	return s.spareWords[:count]
}

// IsRefutedBy reports whether the condition is false in every completion after the possible device is chosen.
func (s *State) IsRefutedBy(c Condition, device int) bool {
	s.Choose(device)
	refuted := c.Bound(s) == outcome.False || s.Domain.Count() < s.Left
	s.Unchoose(device)
	return refuted
}

// IsSound reports whether the results since Begin can be relied on.
func (s *State) IsSound() bool { return !s.aborted && !s.Exhausted && s.Err == nil }
