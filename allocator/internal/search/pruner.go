// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// KEP-5254 searches exhaustively: the verdict on a partial set says nothing about its completions, so each set is completed and
// evaluated. There are 488,526,937,079,580 sets of 16 out of 64 devices.
//
// Package bound says more. It finds out whether any completion of a partial set can be satisfactory. For that it uses the
// structure of the expression and tables of its verdicts on single devices and pairs. If no completion can be, the constraint
// refuses the device that is about to be added. Package bound also finds devices that belong to no satisfactory completion, and
// the search skips them.
//
// For a complete set, the same bounds may prove that the expression is true. The set is then accepted without an evaluation, at
// no cost. In all other cases the expression is evaluated, also if computing the bounds was too much work. If the context ends
// or the budget is exhausted while the bounds are computed, that error ends the search.
//
// An evaluation may also fail because of its cost. There are no bounds unless that is excluded for sets of this size
// (bound.Analysis.Affordable).
//
// As in lookahead.go, a branch is cut only if the search would meet no error in it:
//
//   - The bound is "certainly false", which implies that no completion fails.
//   - Everything else that the branch may evaluate is decided already or can't fail. That concerns selectors of all requests up
//     to the last request that the constraint covers, and other CEL constraints that become complete on the way.
//
// The selectors are evaluated ahead for that. If one fails, the failure is ignored and nothing is cut, because the search may
// find a solution before it reaches that device.

// pruner cuts branches for one CEL constraint. It is prepared when begin is called for the first time.
//
// The constraint reports each change of its set (begin, descend, ascend, end). It asks whether a complete set is certainly
// satisfactory (outcome) and for the error that ended the work on the bounds (failure). The search asks which device to try
// next (next).
type pruner struct {
	constraint *CELConstraint
	search     *Search
	// first is the current alternative of the first covered request. covered holds the requests that make up the set with it.
	first   *Request
	covered []*Request
	// useless is true if the pruner can never cut anything.
	useless bool
	prunerTables
	partialSet
	// refusals counts refused devices. cuts counts partial sets without a satisfactory completion, and devices removed from the
	// domain. lacked counts partial sets that lack devices.
	refusals     int
	cuts, lacked int64
}

// prunerTables is filled when the pruner is prepared and is valid for the whole search.
type prunerTables struct {
	// size is the size of a complete set.
	size   int
	bounds *bound.Bounds
	// eligible holds, for each covered request, the devices that it could get if only the device itself mattered. later holds the
	// eligible devices of all covered requests after it.
	eligible, later bitset.List
	// volatile is true if devices that the search has taken may make eligible devices unavailable.
	volatile bool
	// empty is the empty set.
	empty bitset.Set
}

// partialSet mirrors the set of the constraint. It is valid only between begin and end of the pruner.
type partialSet struct {
	active bool
	// chosen holds the devices of the set. domain holds, for each number of chosen devices, the devices that may still be added.
	// forced holds the devices of domain that every satisfactory completion contains.
	chosen         bitset.Set
	domain, forced bitset.List
	// completed is the outcome of the bounds for the complete set, or 0 if it has not been computed.
	completed bound.Outcome
	// fixpoint reports, for each number of chosen devices, whether the bounds were propagated to a fixpoint.
	fixpoint []bool
}

// thoroughFrom is the number of refusals after which the bounds do more work to exclude devices. Before that, the search may well
// succeed at once.
const thoroughFrom = 3

// begin examines the empty set before the first covered request is met. It returns false if no set is satisfactory.
func (p *pruner) begin() bool {
	if !p.isPrepared() {
		return true
	}
	p.active = true
	p.chosen.Clear()
	first := p.domain.At(0)
	first.Clear()
	for i, r := range p.covered {
		p.joinFree(first, p.eligible.At(i), r)
	}
	r := &p.first.Request
	if p.volatile {
		p.removeTaken(r, 0, first)
	}
	if p.hasCompletion(r, nil) {
		return true
	}
	first.Clear()
	return false
}

// descend examines the set after added was added for request r. It returns false if no completion is satisfactory.
func (p *pruner) descend(r *requests.Request, added *inventory.Candidate) bool {
	c := p.constraint
	if !p.active {
		return true
	}
	p.chosen.Add(added.Position)
	p.completed = 0
	next := p.domain.At(len(c.members))
	next.SetTo(p.domain.At(len(c.members) - 1))
	next.Remove(added.Position)
	at := p.coveredIndex(r)
	eligible, later := p.eligible.At(at), p.later.At(at)
	// Devices before added are only for later requests.
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
		p.removeTaken(r, added.Position+1, next)
	}
	if p.isDetermined(added) || len(c.members) == p.size && p.outcome() == bound.True {
		return true
	}
	if p.hasCompletion(r, added) {
		return true
	}
	p.refusals++
	return false
}

// isDetermined reports whether the set had a single completion and added is part of it. Then nothing is left to compute.
func (p *pruner) isDetermined(added *inventory.Candidate) bool {
	c := p.constraint
	before, now := len(c.members)-1, len(c.members)
	left := p.size - before
	if left == 0 || p.forced.At(before).Count() != left || !p.forced.At(before).Has(added.Position) {
		return false
	}
	p.fixpoint[now] = false
	p.forced.At(now).SetTo(p.forced.At(before))
	p.forced.At(now).Remove(added.Position)
	return p.domain.At(now).Count() == left-1
}

// ascend undoes descend.
func (p *pruner) ascend(removed *inventory.Candidate) {
	if p.active {
		p.chosen.Remove(removed.Position)
		p.completed = 0
	}
}

// end forgets the set, because the first covered request is no longer tried.
func (p *pruner) end() { p.active = false }

// hasCompletion reports whether the set may become satisfactory, or whether something else may fail before the set is complete.
// It removes devices from the domain that belong to no satisfactory completion.
func (p *pruner) hasCompletion(r *requests.Request, last *inventory.Candidate) bool {
	c := p.constraint
	level := len(c.members)
	p.forced.At(level).Clear()
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
		Chosen: p.chosen, Domain: p.domain.At(level), Forced: p.forced.At(level), Left: p.size - level,
		AtFixpoint: level > 0 && p.fixpoint[level-1] && p.domain.At(level).Count()+1 == p.domain.At(level-1).Count(),
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

// isNotAccepted reports whether the [acceptance] of the caller excludes all completions. It narrows the domain.
func (p *pruner) isNotAccepted() bool {
	a, level := p.search.accepts, len(p.constraint.members)
	return a != nil && a.size == p.size && !a.narrow(p.domain.At(level), p.size-level)
}

// outcome returns the result of the bounds for the complete set. If it is True, the set is certainly satisfactory. If the
// bounds have not seen all devices of the set, the outcome is Open.
func (p *pruner) outcome() bound.Outcome {
	c := p.constraint
	if !p.active || !p.bounds.MayProve() || p.chosen.Count() != len(c.members) {
		return bound.Open
	}
	if p.completed == 0 {
		p.completed = p.bounds.Bound(bound.Partial{Chosen: p.chosen, Domain: p.empty})
	}
	return p.completed
}

// lacksDevices reports whether fewer eligible devices are left in the domain than some request still needs.
func (p *pruner) lacksDevices() bool {
	c := p.constraint
	taken := len(c.members)
	for i, r := range p.covered {
		wanted := max(0, r.Count-taken)
		taken = max(0, taken-r.Count)
		if wanted > 0 && p.domain.At(len(c.members)).CountAnd(p.eligible.At(i)) < wanted {
			return true
		}
	}
	return false
}

// failure returns the error that ended the work on the bounds: the context ended or the budget is exhausted. Otherwise it
// returns nil.
func (p *pruner) failure() error {
	if p.bounds == nil || p.bounds.Err() == nil {
		return nil
	}
	return p.constraint.evaluationError(p.bounds.Err())
}

// removeTaken removes devices that became unavailable because the search took others. Devices for r come from the given
// position on.
func (p *pruner) removeTaken(r *requests.Request, from int, domain bitset.Set) {
	for position := range domain.All() {
		if !p.mayTake(r, from, p.search.Inventory.Candidates[position]) {
			domain.Remove(position)
		}
	}
}

// mayTake reports whether r or a later covered request can still get the device.
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

// coveredIndex returns the index of a request in covered, or -1.
func (p *pruner) coveredIndex(r *requests.Request) int {
	for i, q := range p.covered {
		if &q.Request == r {
			return i
		}
	}
	return -1
}

// next returns the first position from the given one on whose device r may get next in a satisfactory completion. Without such
// a position it returns the number of candidates. Devices of a request are taken in ascending order, so r must not skip a
// forced device that no later request can get.
func (p *pruner) next(r *requests.Request, position int) int {
	c := p.constraint
	chosen := len(c.members)
	next := p.domain.At(chosen).Next(position)
	if next < 0 {
		return len(p.search.Inventory.Candidates)
	}
	if !p.forced.At(chosen).IsEmpty() {
		at := p.coveredIndex(r)
		for first := range p.forced.At(chosen).All() {
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

// othersCannotFail reports whether no other CEL constraint may fail before the set of this constraint is complete.
func (p *pruner) othersCannotFail(r *requests.Request, last *inventory.Candidate) bool {
	c := p.constraint
	for o := range p.others(c, r.Order, c.last) {
		if o.mayFail(last) {
			return false
		}
	}
	return true
}

// mayFail reports whether the expression may fail for some completion of the set. The completion may contain the device last.
// It makes no difference whether last has been added already.
func (p *pruner) mayFail(last *inventory.Candidate) bool {
	c := p.constraint
	partial := bound.Partial{Chosen: p.chosen, Left: p.size - len(c.members)}
	partial.Domain = bitset.New(len(p.search.Inventory.Candidates))
	if p.active {
		partial.Domain.SetTo(p.domain.At(len(c.members)))
	} else {
		for i := range p.covered {
			partial.Domain.Join(p.eligible.At(i))
		}
	}
	if last != nil && !p.chosen.Has(last.Position) {
		partial.Domain.Add(last.Position)
	}
	return p.bounds.Bound(partial)&bound.Error != 0
}

// most returns an upper bound of the values of all sets. The set must be empty.
func (p *pruner) most() int64 {
	domain := bitset.New(len(p.search.Inventory.Candidates))
	for i, r := range p.covered {
		p.joinFree(domain, p.eligible.At(i), r)
	}
	return p.bounds.Most(bound.Partial{Chosen: p.empty, Domain: domain, Left: p.size})
}

// raise passes the new floor to the bounds.
func (p *pruner) raise() {
	if p.bounds != nil {
		p.bounds.Exceed(p.constraint.Goal.Floor)
		clear(p.fixpoint)
	}
}

// next returns the position of the first device from the given one on that no CEL constraint rules out.
func (r *Request) next(position int) int {
	for i := 0; i < len(r.decides); i++ {
		d := r.decides[i]
		if !d.covered || !d.constraint.pruner.active {
			continue
		}
		next := d.constraint.pruner.next(&r.Request, position)
		if next > position && i > 0 {
			// The other constraints judged a different device, so ask them again.
			i = -1
		}
		position = next
	}
	return position
}

// isPruned reports whether a CEL constraint already checks that enough devices are left, so that lookahead need not count them.
func (r *Request) isPruned() bool {
	for _, d := range r.decides {
		if d.covered && d.constraint.pruner.active && !d.constraint.pruner.volatile {
			return true
		}
	}
	return false
}

// Narrow removes devices from the domain that the CEL constraints of the request rule out. It returns the forced devices of a
// constraint whose last covered request is the given one, or nil.
func (r *Request) Narrow(domain bitset.Set, last int) (forced bitset.Set) {
	for _, d := range r.decides {
		if p := d.constraint.pruner; d.covered && p.active {
			level := len(d.constraint.members)
			domain.Keep(p.domain.At(level))
			if d.constraint.last == last {
				forced = p.forced.At(level)
			}
		}
	}
	return forced
}
