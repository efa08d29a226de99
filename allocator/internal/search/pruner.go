// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// KEP-5254 searches exhaustively: the verdict on a part of a set tells nothing
// about the whole, so every set must be completed and evaluated. 16 of 64 devices
// are 488,526,937,079,580 sets.
//
// Package bound tells more than the verdict does: whether *any* completion of a
// part can be satisfactory, from the structure of the expression and from tables of
// what it says about single devices and pairs. When it can be none, the constraint
// refuses the device that was about to be added. It also tells which devices are in no
// satisfactory completion; the search passes them over.
//
// When a set is complete, the same bounds may say that it is surely true. Then it is accepted
// without an evaluation, at no cost. Whatever else they say, the expression is asked: also if
// they had too much to look at, or could not ask CEL about a device.
//
// An evaluation may also fail because of what it costs. Where that can't be excluded for sets
// of that size there are no bounds (bound.Analysis.Affordable).
//
// As in lookahead.go, a branch is cut only if the search would have met no error in it:
//
//   - the bound is "surely false", which includes that no completion fails;
//   - what else may be evaluated in the branch is known or can't fail: selectors of
//     all requests up to the last that the constraint covers, other CEL constraints
//     that become complete on the way.
//
// Selectors are looked up ahead for that (speculate). If one fails, its failure is
// forgotten and nothing is cut: the search may well find a solution before it
// comes to that device.

// pruner cuts for one CEL constraint. It is prepared when it is first asked to begin.
//
// The constraint tells it what is taken (begin, descend, ascend, end), and asks it whether a
// complete set is surely satisfactory (outcome) and why CEL could not be asked (failure). The
// search asks it which device comes next.
type pruner struct {
	constraint *CELConstraint
	search     *Search
	// first is the alternative that is tried of the first covered request. covered has the requests whose devices make up the
	// set then.
	first   *Request
	covered []*Request
	// useless: nothing can be cut.
	useless bool
	prunerTables
	partialSet
	// refusals counts the devices that were refused, cuts the parts of sets that could not become satisfactory, lacked the
	// parts of sets for which too few devices were left.
	refusals     int
	cuts, lacked int64
}

// prunerTables is filled when the pruner is prepared, and holds for the whole search.
type prunerTables struct {
	// size is the size of a complete set.
	size   int
	bounds *bound.Bounds
	// eligible has, for each covered request, the devices that it can have as far as the device alone decides. later has the
	// eligible devices of all covered requests after it.
	eligible, later bitset.List
	// volatile: it also depends on what else was taken which devices are eligible.
	volatile bool
	// none is the empty set.
	none bitset.Set
}

// partialSet follows the set of the constraint. Nothing of it holds until the set was begun.
type partialSet struct {
	Begun bool
	// Chosen has the devices of the set. Domain has for each number of chosen devices those that may come next or later, Forced
	// those of them that must.
	Chosen         bitset.Set
	Domain, Forced bitset.List
	// completed is the outcome of the bounds for the complete set, 0 if they were not asked.
	completed bound.Outcome
	// fixpoint tells for each number of chosen devices whether the bounds looked at the set.
	fixpoint []bool
}

// thoroughFrom is the number of refusals from which on more is done to find out which
// devices can be passed over. Until then the search may well be lucky.
const thoroughFrom = 3

// begin looks at the empty set when the first covered request is about to be met. It
// is false if no set is satisfactory.
func (p *pruner) begin() bool {
	if !p.isPrepared() {
		return true
	}
	p.Begun = true
	p.Chosen.Clear()
	first := p.Domain.At(0)
	first.Clear()
	for i, r := range p.covered {
		p.joinFree(first, p.eligible.At(i), r)
	}
	r := &p.first.Request
	if p.volatile {
		p.passOverTaken(r, 0, first)
	}
	if p.hasCompletion(r, nil) {
		return true
	}
	first.Clear()
	return false
}

// descend looks at the set with the device that was added last, for request r. It is
// false if no completion is satisfactory.
func (p *pruner) descend(r *requests.Request, added *inventory.Candidate) bool {
	c := p.constraint
	if !p.Begun {
		return true
	}
	p.Chosen.Add(added.Position)
	p.completed = 0
	next := p.Domain.At(len(c.Members))
	next.SetTo(p.Domain.At(len(c.Members) - 1))
	next.Remove(added.Position)
	at := p.placeOf(r)
	eligible, later := p.eligible.At(at), p.later.At(at)
	// What is before the device is for later requests only.
	for w := range next {
		now := eligible[w]
		switch {
		case w < added.Position/64:
			now = 0
		case w == added.Position/64:
			now &^= 1<<(added.Position%64) - 1
		}
		next[w] &= now | later[w]
	}
	if p.volatile {
		p.passOverTaken(r, added.Position+1, next)
	}
	if p.isDetermined(added) || len(c.Members) == p.size && p.outcome() == bound.True {
		return true
	}
	if p.hasCompletion(r, added) {
		return true
	}
	p.refusals++
	return false
}

// isDetermined reports whether there was one completion only, before the device was added
// that is part of it: nothing more can be found out about it.
func (p *pruner) isDetermined(added *inventory.Candidate) bool {
	c := p.constraint
	before, now := len(c.Members)-1, len(c.Members)
	left := p.size - before
	if left == 0 || p.Forced.At(before).Count() != left || !p.Forced.At(before).Has(added.Position) {
		return false
	}
	p.fixpoint[now] = false
	p.Forced.At(now).SetTo(p.Forced.At(before))
	p.Forced.At(now).Remove(added.Position)
	return p.Domain.At(now).Count() == left-1
}

// ascend undoes descend.
func (p *pruner) ascend(removed *inventory.Candidate) {
	if p.Begun {
		p.Chosen.Remove(removed.Position)
		p.completed = 0
	}
}

// end forgets the set: the first covered request is not tried any more.
func (p *pruner) end() { p.Begun = false }

// hasCompletion reports whether the set as it is may become satisfactory, or something
// else may fail before it is complete. It removes devices from the domain that are in no
// such completion.
func (p *pruner) hasCompletion(r *requests.Request, last *inventory.Candidate) bool {
	c := p.constraint
	level := len(c.Members)
	p.Forced.At(level).Clear()
	p.fixpoint[level] = false
	if !p.othersCannotFail(r, last) {
		return true
	}
	effort := bound.Quick
	if p.refusals >= thoroughFrom {
		effort = bound.Thorough
	}
	unaccepted := p.isNotAccepted()
	lacks := !unaccepted && p.lacksDevices()
	if unaccepted || lacks || p.completed == bound.False {
		p.cuts++
		if lacks {
			p.lacked++
		}
		return false
	}
	partial := bound.Partial{
		Chosen: p.Chosen, Domain: p.Domain.At(level), Forced: p.Forced.At(level), Left: p.size - level,
		AtFixpoint: level > 0 && p.fixpoint[level-1] && p.Domain.At(level).Count()+1 == p.Domain.At(level-1).Count(),
	}
	before := partial.Domain.Count()
	infeasible := p.bounds.Infeasible(partial, effort)
	p.cuts += int64(before - partial.Domain.Count())
	if infeasible {
		p.cuts++
		return false
	}
	p.fixpoint[level] = true
	return true
}

// isNotAccepted reports whether the caller accepts no completion. It narrows the domain.
func (p *pruner) isNotAccepted() bool {
	a, level := p.search.accepts, len(p.constraint.Members)
	return a != nil && a.size == p.size && !a.narrow(p.Domain.At(level), p.size-level)
}

// outcome is what the bounds say of the complete set. If it is true, the set is surely
// satisfactory. They can say something only if they have seen all of its devices.
func (p *pruner) outcome() bound.Outcome {
	c := p.constraint
	if !p.Begun || !p.bounds.MayProve() || p.Chosen.Count() != len(c.Members) {
		return bound.Open
	}
	if p.completed == 0 {
		p.completed = p.bounds.Bound(bound.Partial{Chosen: p.Chosen, Domain: p.none})
	}
	return p.completed
}

// lacksDevices reports whether one of the requests can't get as many devices as it still
// wants.
func (p *pruner) lacksDevices() bool {
	c := p.constraint
	taken := len(c.Members)
	for i, r := range p.covered {
		wanted := max(0, r.Count-taken)
		taken = max(0, taken-r.Count)
		if wanted > 0 && p.Domain.At(len(c.Members)).CountAnd(p.eligible.At(i)) < wanted {
			return true
		}
	}
	return false
}

// failure is why the expression could not be asked about single devices, nil if it
// could.
func (p *pruner) failure() error {
	if p.bounds == nil || p.bounds.Err() == nil {
		return nil
	}
	return p.constraint.evaluationError(p.bounds.Err())
}

// passOverTaken removes devices that can't be had any more because of what else was
// taken. Those for r come from the given position on.
func (p *pruner) passOverTaken(r *requests.Request, from int, domain bitset.Set) {
	for position := range domain.All() {
		if !p.mayTake(r, from, p.search.Inventory.Candidates[position]) {
			domain.Remove(position)
		}
	}
}

// mayTake reports whether the device can still be had for one of the covered requests
// from r on.
func (p *pruner) mayTake(r *requests.Request, from int, candidate *inventory.Candidate) bool {
	for i, q := range p.covered {
		if q.Order < r.Order || &q.Request == r && candidate.Position < from || !p.eligible.At(i).Has(candidate.Position) {
			continue
		}
		if p.mayTakeFor(q, candidate) {
			return true
		}
	}
	return false
}

// placeOf is the place of a request among those covered.
func (p *pruner) placeOf(r *requests.Request) int {
	for i, q := range p.covered {
		if &q.Request == r {
			return i
		}
	}
	return -1
}

// next is the first position from the given one on whose device may be the next one of
// request r in a satisfactory completion, or as many as there are candidates. Devices of
// a request are taken in ascending order, so none may come after one that is forced.
func (p *pruner) next(r *requests.Request, position int) int {
	c := p.constraint
	chosen := len(c.Members)
	next := p.Domain.At(chosen).Next(position)
	if next < 0 {
		return len(p.search.Inventory.Candidates)
	}
	if !p.Forced.At(chosen).IsEmpty() {
		at := p.placeOf(r)
		for first := range p.Forced.At(chosen).All() {
			if first >= next {
				break
			}
			if p.eligible.At(at).Has(first) && !p.later.At(at).Has(first) {
				return len(p.search.Inventory.Candidates)
			}
		}
	}
	return next
}

// othersCannotFail reports whether no other CEL constraint may fail before the set of
// this one is complete.
func (p *pruner) othersCannotFail(r *requests.Request, last *inventory.Candidate) bool {
	c := p.constraint
	for o := range p.others(c, r.Order, c.last) {
		if o.mayFail(last) {
			return false
		}
	}
	return true
}

// mayFail reports whether the expression may fail for what the set can become, with the
// device last, which it may or may not have seen yet.
func (p *pruner) mayFail(last *inventory.Candidate) bool {
	c := p.constraint
	partial := bound.Partial{Chosen: p.Chosen, Left: p.size - len(c.Members)}
	partial.Domain = bitset.New(len(p.search.Inventory.Candidates))
	if p.Begun {
		partial.Domain.SetTo(p.Domain.At(len(c.Members)))
	} else {
		for i := range p.covered {
			partial.Domain.Join(p.eligible.At(i))
		}
	}
	if last != nil && !p.Chosen.Has(last.Position) {
		partial.Domain.Add(last.Position)
	}
	return p.bounds.Bound(partial)&bound.Error != 0
}

// most is what the value of no set exceeds, before a device was chosen.
func (p *pruner) most() int64 {
	domain := bitset.New(len(p.search.Inventory.Candidates))
	for i, r := range p.covered {
		p.joinFree(domain, p.eligible.At(i), r)
	}
	return p.bounds.Most(bound.Partial{Chosen: p.none, Domain: domain, Left: p.size})
}

// raise has the bounds know the new floor.
func (p *pruner) raise() {
	if p.bounds != nil {
		p.bounds.Exceed(p.constraint.Goal.Floor)
		clear(p.fixpoint)
	}
}

// Next is the position of the first device from the given one on that no CEL
// constraint rules out.
func (r *Request) Next(position int) int {
	for i := 0; i < len(r.Decides); i++ {
		d := r.Decides[i]
		if !d.Covered || !d.constraint.Pruner.Begun {
			continue
		}
		next := d.constraint.Pruner.next(&r.Request, position)
		if next > position && i > 0 {
			// What the others said was about another device.
			i = -1
		}
		position = next
	}
	return position
}

// isPruned reports whether a CEL constraint knows better than counting devices whether
// the request can get the rest of its devices.
func (r *Request) isPruned() bool {
	for _, d := range r.Decides {
		if d.Covered && d.constraint.Pruner.Begun && !d.constraint.Pruner.volatile {
			return true
		}
	}
	return false
}

// Narrow removes devices from the domain that the CEL constraints of the request rule out. It returns the devices that the
// constraint is sure to need whose last covered request is the given one, nil if there are none.
func (r *Request) Narrow(domain bitset.Set, last int) (forced bitset.Set) {
	for _, d := range r.Decides {
		if p := d.constraint.Pruner; d.Covered && p.Begun {
			level := len(d.constraint.Members)
			domain.Keep(p.Domain.At(level))
			if d.constraint.last == last {
				forced = p.Forced.At(level)
			}
		}
	}
	return forced
}
