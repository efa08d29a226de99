// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"slices"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// condition is a part of type bool. What it says holds for every completion of the partial set
// in a state: the package comment has the promise. Besides, it may know how it is propagated ([propagator])
// and what its negation is ([negator]).
type condition interface {
	// bound has at least the results that are possible. It does not change the state.
	bound(s *state) outcome.Outcome
}

// quantity is a part of type int.
type quantity interface {
	number(s *state) outcome.Number
}

// open is a part that is not understood.
type open struct{}

func (open) bound(*state) outcome.Outcome { return outcome.Open }

func (open) number(*state) outcome.Number { return outcome.OpenNumber }

func (n open) negation() condition { return n }

// isOpen reports whether a condition or a quantity was not understood.
func isOpen(node any) bool {
	_, is := node.(open)
	return is
}

// status is what propagating a condition came to, in the words of Gecode.
type status int

const (
	// failed: the condition is surely false.
	failed status = iota
	// noFix: propagating once more might remove or require something.
	noFix
	// fix: propagating once more would change nothing, as long as nothing else changes.
	fix
	// subsumed: the condition is surely true, whichever devices of the domain are chosen.
	subsumed
)

// propagator is a condition that knows how to be propagated.
type propagator interface {
	condition
	// propagate removes devices from s.Domain that would make the condition surely false
	// if they were chosen. It may require devices that are in all completions for which the
	// condition is true, unless s.hypothetical: then the condition need not hold.
	propagate(s *state) status
}

// statusOf is the status of a condition that removes nothing.
func statusOf(bound outcome.Outcome) status {
	switch bound {
	case outcome.False:
		return failed
	case outcome.True:
		return subsumed
	default:
		return fix
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

// fits reports whether the tables for that many devices are small enough to be begun.
func (p *problem) fits(devices int) bool {
	each := len(p.leaves)*entryBytes + len(p.predicates)*2*maxArity*pointerBytes
	return devices <= maxBytes/max(1, each)
}

// state is a partial set in the course of an evaluation. Its fields are grouped by the phase that fills them.
type state struct {
	// Partial is the partial set. Propagating changes it.
	Partial
	// slots has the devices that the iteration variables stand for.
	slots []int

	search
	call
	propagation
	evaluation
	memory
}

// search is set when a search begins. Only the conjuncts change, when the value to exceed does.
type search struct {
	problem   *problem
	tables    *tables
	conjuncts []condition
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
	active []condition
	// removed: a device is not possible any more.
	removed bool
	// forced are the devices that were chosen because no completion can do without them.
	forced bitset.Set
	// hypothetical: what is being propagated need not hold.
	hypothetical bool
	// shallow: quantifiers look at chosen devices only, which is cheaper and tells less.
	shallow bool
	// lacking are the rows of chosen devices that need all but one of those left to choose.
	lacking []*row
}

// evaluation is filled by filling tables. It lasts as long as the search.
type evaluation struct {
	// evaluations and builds are counts, err is why CEL could not be asked.
	evaluations, builds int64
	err                 error
	// exhausted: the work of a call, or the memory of the tables, was too much.
	exhausted bool
}

// memory is used again by one condition after the other.
type memory struct {
	// before is the domain before a call.
	before bitset.Set
	// lent is what spare and slots begin with, as much as most conditions need.
	lent struct {
		sets  [4]bitset.Set
		slots [4]int
	}
	// spare are sets that are not in use, spareRows a set for each device, spareWords sets of bits.
	spare      []bitset.Set
	spareRows  []bitset.Set
	spareWords []uint64
	// spareGraph is the memory of the constraint that links devices with their successors.
	spareGraph any
	// settled are devices for any two of which a predicate is either true or false, by predicate.index.
	settled []bitset.Set
	// ofConditions is what conditions remember, by derivation.index.
	ofConditions []any
}

// What bounds may take is limited, because expressions and devices are untrusted:
// quantifiers in quantifiers cost the number of devices to the power of their depth.
const (
	// maxBytes is about the memory that the tables of an expression may take.
	maxBytes = 16 << 20
	// entryBytes is what an entry of a leaf takes.
	entryBytes, pointerBytes = 64, 8
	// maxWork is how many devices one call of Infeasible or Bound may look at, which
	// takes some ten milliseconds.
	maxWork = 1 << 18
	// workBetween is after how much work the context is looked at: what is done for one device depends on the expression.
	workBetween = 1 << 6
)

// devices counts those that are chosen or possible.
func (s *state) devices() int { return s.Chosen.Count() + s.Domain.Count() }

// spend counts a device that is looked at. It is false if there were too many, or the context has ended:
// whatever is asked is open then.
func (s *state) spend() bool {
	s.work++
	s.exhausted = s.exhausted || s.work > maxWork || s.work%workBetween == 0 && s.ctx.Err() != nil
	return !s.exhausted
}

// borrow returns a copy of a set, to be given back.
func (s *state) borrow(of bitset.Set) bitset.Set {
	if n := len(s.spare); n > 0 {
		result := s.spare[n-1]
		s.spare = s.spare[:n-1]
		result.SetTo(of)
		return result
	}
	return slices.Clone(of)
}

// universe is the number of devices that were tabulated.
func (s *state) universe() int { return len(s.tables.devices) }

// isAtFixpoint reports whether nothing changed since the devices were looked at.
func (s *state) isAtFixpoint() bool { return s.fixpoint == s.devices() }

// addWork counts devices that were looked at. Whatever is asked next may be open.
func (s *state) addWork(count int) { s.work += count }

func (s *state) giveBack(b bitset.Set) { s.spare = append(s.spare, b) }

// propagate removes what can be removed at low cost.
func (s *state) propagate(c condition) status {
	if p, ok := c.(propagator); ok {
		return p.propagate(s)
	}
	return statusOf(c.bound(s))
}

func (s *state) choose(device int) {
	s.Domain.Remove(device)
	s.Chosen.Add(device)
	s.Left--
}

func (s *state) unchoose(device int) {
	s.Left++
	s.Chosen.Remove(device)
	s.Domain.Add(device)
}

func (s *state) remove(device int) {
	s.Domain.Remove(device)
	s.removed = true
}

// require chooses the possible devices of a set, because no completion that is not
// false can do without them.
func (s *state) require(devices bitset.Set) {
	s.Left -= devices.CountAnd(s.Domain)
	for w, word := range devices {
		word &= s.Domain[w]
		s.Domain[w] &^= word
		s.Chosen[w] |= word
		s.forced[w] |= word
	}
	s.removed = true
}

// keep removes the devices that are not in the set.
func (s *state) keep(devices bitset.Set) { s.removed = s.Domain.Keep(devices) || s.removed }

// drop removes the devices that are in the set.
func (s *state) drop(devices bitset.Set) { s.removed = s.Domain.Drop(devices) || s.removed }

// areWithin reports whether all devices that are chosen or possible are in a set.
func (s *state) areWithin(devices bitset.Set) bool {
	return s.Chosen.IsWithin(devices) && (s.Left <= 0 || s.Domain.IsWithin(devices))
}

// countsOf has the numbers of chosen and of possible devices that are in the set.
func (s *state) countsOf(of bitset.Set) (chosen, possible int) {
	return of.CountAnd(s.Chosen), of.CountAnd(s.Domain)
}

// rows returns memory for a set for each device, until it is called again.
func (s *state) rows() []bitset.Set {
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

// words returns memory for words of bits, until it is called again.
func (s *state) words(count int) []uint64 {
	if len(s.spareWords) < count {
		s.spareWords = make([]uint64, count)
	}
	return s.spareWords[:count]
}

// isRefutedBy reports whether the condition is surely false if the possible device is
// chosen.
func (s *state) isRefutedBy(c condition, device int) bool {
	s.choose(device)
	refuted := c.bound(s) == outcome.False || s.Domain.Count() < s.Left
	s.unchoose(device)
	return refuted
}

// problem is what a search has to satisfy, or to make greater, and what it needs tables for.
type problem struct {
	// usable: all errors are absorbed as they should. Nothing can be told otherwise.
	usable bool
	// conjuncts leaves out those that are true for every set. provable: none of them is open.
	conjuncts []condition
	provable  bool
	// goal is the value of a preference, in place of conjuncts. above returns the condition that it is above a number.
	goal  quantity
	above func(value int64) condition

	// leaves and predicates have a table each. derivations counts the conditions that derive something.
	leaves      []*leaf
	predicates  []tabulated
	derivations int
	guards      []guard
	// slots is the number of iteration variables that stand for devices.
	slots int
}

// isSound reports whether what was found since begin can be relied on.
func (s *state) isSound() bool { return !s.aborted && !s.exhausted && s.err == nil }
