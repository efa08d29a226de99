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

// Condition is a part of type bool. What it says holds for every completion of the partial set
// in a state: the package comment has the promise. Besides, it may know how it is propagated ([propagator])
// and what its negation is (package condition).
type Condition interface {
	// Bound has at least the results that are possible. It does not change the state.
	Bound(s *State) outcome.Outcome
}

// Quantity is a part of type int.
type Quantity interface {
	Number(s *State) outcome.Number
}

// Open is a part that is not understood.
type Open struct{}

// Bound is open.
func (Open) Bound(*State) outcome.Outcome { return outcome.Open }

// Number is open.
func (Open) Number(*State) outcome.Number { return outcome.OpenNumber }

// Negation is open, too.
func (n Open) Negation() Condition { return n }

// IsOpen reports whether a condition or a quantity was not understood.
func IsOpen(node any) bool {
	_, is := node.(Open)
	return is
}

// Status is the result of propagating a condition, in the words of Gecode.
type Status int

const (
	// Failed means that the condition is surely false.
	Failed Status = iota
	// NoFix means that propagating once more might remove or require something.
	NoFix
	// Fix means that propagating once more would change nothing, as long as nothing else changes.
	Fix
	// Subsumed means that the condition is surely true, whichever devices of the domain are chosen.
	Subsumed
)

// propagator is a condition that knows how to be propagated.
type propagator interface {
	Condition
	// Propagate removes devices from s.Domain that would make the condition surely false
	// if they were chosen. It may require devices that are in all completions for which the
	// condition is true, unless s.Hypothetical: then the condition need not hold.
	Propagate(s *State) Status
}

// StatusOf is the status of a condition that removes nothing.
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

// Partial is a set of which a part is chosen. Devices go by their positions in the list
// that was tabulated.
type Partial struct {
	// Chosen are the devices in the set. Domain are those that may be added; the two have
	// no device in common.
	Chosen, Domain bitset.Set
	// Left is the number of devices to be added.
	Left int
	// Forced is where Infeasible puts those devices of the domain that are in every
	// completion which is not false. It may be nil.
	Forced bitset.Set
	// AtFixpoint says that the last devices were chosen from a partial set that Infeasible has
	// looked at, and that it had the same devices: what each of them can have has not
	// changed.
	AtFixpoint bool
}

// A Problem has the conjuncts that a set must satisfy, or the goal that it makes greater, and the parts that need tables.
type Problem struct {
	// Usable: all errors are absorbed as they should. Nothing can be told otherwise.
	Usable bool
	// Conjuncts leaves out those that are true for every set. Provable: none of them is open.
	Conjuncts []Condition
	Provable  bool
	// Goal is the value of a preference, in place of conjuncts. Above returns the condition that it is above a number.
	Goal  Quantity
	Above func(value int64) Condition

	// Leaves and predicates have a table each. Derivations counts the conditions that derive something.
	Leaves      []*Leaf
	Predicates  []Tabulated
	Derivations int
	Guards      []Guard
	// Slots is the number of iteration variables that stand for devices.
	Slots int
}

// Fits reports whether the tables for that many devices are small enough to be begun.
func (p *Problem) Fits(devices int) bool {
	each := len(p.Leaves)*entryBytes + len(p.Predicates)*2*MaxArity*pointerBytes
	return devices <= maxBytes/max(1, each)
}

// State is a partial set in the course of an evaluation. Its fields are grouped by the phase that fills them.
type State struct {
	// Partial is the partial set. Propagating changes it.
	Partial
	// Slots has the devices that the iteration variables stand for.
	Slots []int

	search
	call
	propagation
	evaluation
	memory
}

// search is set when a search begins. Only the conjuncts change, when the value to exceed does.
type search struct {
	// Conjuncts are those of the problem, or the condition that its goal exceeds a value.
	Problem   *Problem
	tables    *Tables
	Conjuncts []Condition
	ctx       context.Context
	budget    *cel.Budget
}

// call is set when a call begins, that of Bound, Infeasible or Most.
type call struct {
	// work counts the devices that the call looked at.
	work int
	// aborted: something was met that would end the evaluation of the expression, whatever stands beside it.
	aborted bool
	// fixpoint is the number of devices, chosen and possible, for which nothing changed since they were looked at, -1 if
	// something did.
	fixpoint int
}

// propagation is filled by propagating.
type propagation struct {
	// active are the conjuncts that are not known to be true.
	active []Condition
	// Removed: a device is not possible any more.
	Removed bool
	// forced are the devices that were chosen because no completion can do without them.
	forced bitset.Set
	// Hypothetical: what is being propagated need not hold.
	Hypothetical bool
	// Shallow: quantifiers look at chosen devices only, which is cheaper and tells less.
	Shallow bool
	// Lacking are the rows of chosen devices that need all but one of those left to choose.
	Lacking []*Row
}

// evaluation is filled by filling tables. It lasts as long as the search.
type evaluation struct {
	// Evaluations counts what CEL was asked for, Builds the tables that were begun. Err is why CEL could not be asked.
	Evaluations, Builds int64
	Err                 error
	// Exhausted: the work of a call, or the memory of the tables, was too much.
	Exhausted bool
}

// memory is used again by one condition after the other.
type memory struct {
	// before is the domain before a call.
	before bitset.Set
	// lent is the memory that spare and slots begin with. It is enough for most conditions.
	lent struct {
		sets  [4]bitset.Set
		slots [4]int
	}
	// spare are sets that are not in use, spareRows a set for each device, spareWords sets of bits.
	spare      []bitset.Set
	spareRows  []bitset.Set
	spareWords []uint64
	// SpareGraph is the memory of the constraint that links devices with their successors.
	SpareGraph any
	// settled are devices for any two of which a predicate is either true or false, by Predicate.Index.
	settled []bitset.Set
	// ofConditions has the memory of conditions, by Derivation.index.
	ofConditions []any
}

// What bounds may take is limited, because expressions and devices are untrusted:
// quantifiers in quantifiers cost the number of devices to the power of their depth.
const (
	// maxBytes is about the memory that the tables of an expression may take.
	maxBytes = 16 << 20
	// entryBytes is the memory of an entry of a leaf.
	entryBytes, pointerBytes = 64, 8
	// maxWork is how many devices one call of Infeasible or Bound may look at, which
	// takes some ten milliseconds.
	maxWork = 1 << 18
	// workBetween is after how much work the context is looked at: what is done for one device depends on the expression.
	workBetween = 1 << 6
)

// devices counts those that are chosen or possible.
func (s *State) devices() int { return s.Chosen.Count() + s.Domain.Count() }

// Spend counts a device that is looked at. It is false if there were too many, or the context has ended:
// whatever is asked is open then.
func (s *State) Spend() bool {
	s.work++
	s.Exhausted = s.Exhausted || s.work > maxWork || s.work%workBetween == 0 && s.ctx.Err() != nil
	return !s.Exhausted
}

// Borrow returns a copy of a set, to be given back.
func (s *State) Borrow(of bitset.Set) bitset.Set {
	if n := len(s.spare); n > 0 {
		result := s.spare[n-1]
		s.spare = s.spare[:n-1]
		result.SetTo(of)
		return result
	}
	return slices.Clone(of)
}

// Universe is the number of devices that were tabulated.
func (s *State) Universe() int { return len(s.tables.devices) }

// IsAtFixpoint reports whether nothing changed since the devices were looked at.
func (s *State) IsAtFixpoint() bool { return s.fixpoint == s.devices() }

// AddWork counts devices that were looked at. Whatever is asked next may be open.
func (s *State) AddWork(count int) { s.work += count }

// GiveBack takes back a set that was borrowed.
func (s *State) GiveBack(b bitset.Set) { s.spare = append(s.spare, b) }

// Propagate removes what can be removed at low cost.
func (s *State) Propagate(c Condition) Status {
	if p, ok := c.(propagator); ok {
		return p.Propagate(s)
	}
	return StatusOf(c.Bound(s))
}

// Choose moves a possible device to those that are chosen.
func (s *State) Choose(device int) {
	s.Domain.Remove(device)
	s.Chosen.Add(device)
	s.Left--
}

// Unchoose takes back what Choose did last.
func (s *State) Unchoose(device int) {
	s.Left++
	s.Chosen.Remove(device)
	s.Domain.Add(device)
}

// Remove takes a possible device out of the domain.
func (s *State) Remove(device int) {
	s.Domain.Remove(device)
	s.Removed = true
}

// Require chooses the possible devices of a set, because no completion that is not
// false can do without them.
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

// Keep removes the devices that are not in the set.
func (s *State) Keep(devices bitset.Set) { s.Removed = s.Domain.Keep(devices) || s.Removed }

// Drop removes the devices that are in the set.
func (s *State) Drop(devices bitset.Set) { s.Removed = s.Domain.Drop(devices) || s.Removed }

// AreWithin reports whether all devices that are chosen or possible are in a set.
func (s *State) AreWithin(devices bitset.Set) bool {
	return s.Chosen.IsWithin(devices) && (s.Left <= 0 || s.Domain.IsWithin(devices))
}

// CountsOf has the numbers of chosen and of possible devices that are in the set.
func (s *State) CountsOf(of bitset.Set) (chosen, possible int) {
	return of.CountAnd(s.Chosen), of.CountAnd(s.Domain)
}

// Rows returns memory for a set for each device, until it is called again.
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

// Words returns memory for words of bits, until it is called again.
func (s *State) Words(count int) []uint64 {
	if len(s.spareWords) < count {
		s.spareWords = make([]uint64, count)
	}
	return s.spareWords[:count]
}

// IsRefutedBy reports whether the condition is surely false if the possible device is
// chosen.
func (s *State) IsRefutedBy(c Condition, device int) bool {
	s.Choose(device)
	refuted := c.Bound(s) == outcome.False || s.Domain.Count() < s.Left
	s.Unchoose(device)
	return refuted
}

// IsSound reports whether what was found since begin can be relied on.
func (s *State) IsSound() bool { return !s.aborted && !s.Exhausted && s.Err == nil }
