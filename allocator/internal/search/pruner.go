// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// KEP-5254 searches exhaustively. It completes and evaluates each set, because the value of the expression for a partial set
// says nothing about complete sets. There are 488,526,937,079,580 sets of 16 out of 64 devices.
//
// Package bound can exclude partial sets. It reads the structure of the expression and tables of its values for single devices
// and pairs. If no completion of the partial set with the next device is satisfactory, the constraint refuses this device.
// Package bound also finds the devices that belong to no satisfactory completion, and the search skips these devices.
//
// For a complete set, the bounds may prove that the expression is true. Then the set is accepted without an evaluation and
// without cost. In all other cases the expression is evaluated, also if the work on the bounds exceeded its limit. If the
// context ends or the budget is exhausted while the bounds are computed, the search ends with that error.
//
// An evaluation also fails if its cost exceeds the limit. So bounds are used only if no evaluation of a set of this size can
// exceed the limit (bound.Analysis.Affordable).
//
// As in lookahead.go, a branch is cut only if the search would meet no error in it:
//
//    - The bounds prove that the expression is false for all completions. This implies that no evaluation of a completion
//      fails.
//    - Every other evaluation in the branch has succeeded already or can't fail. Other evaluations are selectors of all
//      requests up to the last request that the constraint covers, and other CEL constraints whose sets become complete in the
//      branch.
//
// The pruner evaluates these selectors ahead. If a selector fails, the pruner ignores the error and cuts nothing, because the
// search may find a solution before it reaches that device.

// pruner cuts branches for one CEL constraint. It is prepared when begin is called for the first time.
//
// The constraint calls begin, descend, ascend and end for each change of its set. It calls outcome to find out whether a
// complete set is certainly satisfactory, and failure for the error that ended the work on the bounds. The search calls next
// for the next device to try.
type pruner struct {
	constraint *CELConstraint
	search     *Search
	// first is the current alternative of the first covered request. covered holds all requests whose devices make up the set.
	first   *Request
	covered []*Request
	// useless is true if the pruner can never cut anything.
	useless bool
	prunerTables
	partialSet
	// refusals counts refused devices. cuts counts partial sets without a satisfactory completion, plus devices removed from
	// the domain. lacked counts the partial sets that were cut because too few devices were left.
	refusals     int
	cuts, lacked int64
}

// prunerTables is filled when the pruner is prepared. It stays valid for the whole search.
type prunerTables struct {
	// size is the size of a complete set.
	size   int
	bounds *bound.Bounds
	// eligible holds, for each covered request, the devices that the request could get if no device were taken. later holds,
	// for each covered request, the union of the eligible devices of all covered requests after it.
	eligible, later bitset.List
	// volatile is true if a device that the search takes may make another eligible device unavailable.
	volatile bool
	// empty is an empty domain, used for complete sets.
	empty bitset.Set
}

// partialSet mirrors the set of the constraint. It is valid only between begin and end of the pruner.
type partialSet struct {
	active bool
	// chosen holds the devices of the set. domain is indexed by the number of chosen devices and holds the devices that may still
	// be added. forced is indexed in the same way and holds the devices of domain that every satisfactory completion contains.
	chosen         bitset.Set
	domain, forced bitset.List
	// completed is the outcome of the bounds for the complete set, or 0 if the outcome has not been computed.
	completed bound.Outcome
	// fixpoint is indexed by the number of chosen devices. An entry is true if the bounds were propagated to a fixpoint.
	fixpoint []bool
}

// thoroughFrom is the number of refusals after which the bounds spend more work on a partial set. A search with fewer refusals
// may well succeed without that work.
const thoroughFrom = 3

// begin examines the empty set before the first covered request gets devices. It returns false if no set is satisfactory.
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

// descend examines the set after added was added to it for request r. It returns false if no completion is satisfactory.
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
	// r takes its devices in ascending order, so only later requests can get devices before added.
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

// isDetermined reports whether the set had a single possible completion before the device added was added, and added is part of
// this completion. Then the bounds need no computation.
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

// end marks the set as invalid after the search has tried the first covered request.
func (p *pruner) end() { p.active = false }

// hasCompletion reports whether some completion of the set may be satisfactory, or another evaluation may fail before the set
// is complete. It removes the devices from the domain that belong to no satisfactory completion.
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
	left := partial.Domain.Count()
	if a := p.search.accepts; left < before && a != nil && a.groups != nil && p.isNotAccepted() {
		// The bounds count each device, although a set has only one device of each group.
		p.cuts++
		return false
	}
	p.fixpoint[level] = left == partial.Domain.Count()
	return true
}

// isNotAccepted reports whether the caller's condition ([acceptance]) excludes all completions. It removes devices from the
// domain that the condition excludes.
func (p *pruner) isNotAccepted() bool {
	a, level := p.search.accepts, len(p.constraint.members)
	return a != nil && a.size == p.size && !a.narrow(p.domain.At(level), p.size-level)
}

// outcome returns the outcome of the bounds for the complete set. True means that the set is certainly satisfactory. The
// outcome is Open if chosen lacks some of the set's devices.
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

// lacksDevices reports whether the domain has fewer eligible devices than one of the covered requests still needs.
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

// failure returns the error that ended the work on the bounds (the end of the context or an exhausted budget), or nil.
func (p *pruner) failure() error {
	if p.bounds == nil || p.bounds.Err() == nil {
		return nil
	}
	return p.constraint.evaluationError(p.bounds.Err())
}

// removeTaken removes the devices from the domain that became unavailable because the search took other devices. r can get only
// devices at position from or later.
func (p *pruner) removeTaken(r *requests.Request, from int, domain bitset.Set) {
	for position := range domain.All() {
		if !p.mayTake(r, from, p.search.Inventory.Candidates[position]) {
			domain.Remove(position)
		}
	}
}

// mayTake reports whether r or a later covered request can still get the device. r gets only devices at position from or later.
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

// next returns the first position, starting at the given position, of a device that r may get in a satisfactory completion. If
// there is no such device, it returns the number of candidates. A request takes its devices in ascending order, so r must not
// skip a forced device that no later request can get.
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

// mayFail reports whether the expression may fail for some completion of the set. The completion may contain the device last,
// whether or not last is in the set already. last may be nil.
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

// most returns an upper bound of the preference's value over all sets. The pruner's set must be empty.
func (p *pruner) most() int64 {
	domain := bitset.New(len(p.search.Inventory.Candidates))
	for i, r := range p.covered {
		p.joinFree(domain, p.eligible.At(i), r)
	}
	return p.bounds.Most(bound.Partial{Chosen: p.empty, Domain: domain, Left: p.size})
}

// raise passes the new floor of the goal to the bounds.
func (p *pruner) raise() {
	if p.bounds != nil {
		p.bounds.Exceed(p.constraint.Goal.Floor)
		clear(p.fixpoint)
	}
}

// next returns the first position, starting at the given position, that no CEL constraint of r excludes.
func (r *Request) next(position int) int {
	for i := 0; i < len(r.decides); i++ {
		d := r.decides[i]
		if !d.covered || !d.constraint.pruner.active {
			continue
		}
		next := d.constraint.pruner.next(&r.Request, position)
		if next > position && i > 0 {
			// The other constraints have checked an earlier position, so check the new position with all constraints.
			i = -1
		}
		position = next
	}
	return position
}

// isPruned reports whether a CEL constraint that covers r already checks that enough devices are left. Lookahead then counts
// nothing.
func (r *Request) isPruned() bool {
	for _, d := range r.decides {
		if d.covered && d.constraint.pruner.active && !d.constraint.pruner.volatile {
			return true
		}
	}
	return false
}

// Narrow removes the devices from the domain that the CEL constraints of r exclude. last is the index of a request. Narrow
// returns the forced devices of a constraint whose last covered request is this request, or nil.
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
