// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "slices"

// Reading an expression takes longer than evaluating it once: two columns of eight devices
// are 16 evaluations. On a node with few devices of which none is in use the first set is
// therefore tried as it comes: often it is right, and it is the same for all such nodes of
// one hardware, so that its verdict is found out once. Only if the set turns out wrong is
// the expression read, and the search goes on from where it stands as if it had been read
// from the beginning.
//
// Whether that is so is told from the claims and the node alone: what others left in the
// cache must not decide how a search goes.

// fewSets is the number of sets up to which the first is tried without reading the
// expression. The more there are, the less is one evaluation likely to help.
const fewSets = 128

// firstSet is how far a search is with the first set of a constraint.
type firstSet int8

const (
	// notTried: it is not known yet whether it is to be tried.
	notTried firstSet = iota
	// beingTried: nothing was given back since the first device was looked for.
	beingTried
	// failed: the expression is to be read before the next device is looked for.
	failed
	// over: the expression was read, or is when it is needed.
	over
)

// triesFirstSet tells whether the search has yet to try the first set of the constraint. It
// does so once, and only where devices do not depend on each other but by this constraint:
// what was taken for its set can then be put back in thought.
func (c *celConstraint) triesFirstSet() bool {
	p := &c.pruner
	if p.first == notTried && c.hasFewSets() {
		p.first = beingTried
		return true
	}
	p.first = over
	return false
}

func (c *celConstraint) hasFewSets() bool {
	s, sets := c.search, 1
	if len(s.celConstraints) != 1 || c.last-c.first+1 != len(c.covered) {
		return false
	}
	if s.ordinary.Count() != len(s.candidates) || !s.available.allocated.IsEmpty() || !s.available.taken.IsEmpty() {
		return false
	}
	for _, all := range c.covered {
		r := all[0]
		if len(s.requests[c.claimIndex][r.order]) != 1 || len(r.constraints) != 1 || r.adminAccess() || r.wantsAll() || r.wantsCapacity() {
			return false
		}
		if sets *= fewChoices(len(s.candidates), r.count); sets > fewSets {
			return false
		}
	}
	return true
}

// fewChoices is the number of ways to choose k of n, or anything above fewSets.
func fewChoices(n, k int) int {
	choices := 1
	for i := range min(k, n-k) {
		if choices = choices * (n - i) / (i + 1); choices > fewSets {
			break
		}
	}
	return choices
}

// catchUp reads the expression if the first set has failed, and looks at the members of
// the set, one after the other, as if that had been done when they were added.
func (c *celConstraint) catchUp() {
	p := &c.pruner
	if p.first != failed {
		return
	}
	p.first = over
	members := slices.Clone(c.members)
	if !c.isPrepared() {
		return
	}
	c.members = c.members[:0]
	hopeful := c.startWith(members)
	for i, member := range members {
		c.members = append(c.members, member)
		if hopeful {
			hopeful = c.descend(c.requestOf(i), member)
		} else {
			p.chosen.Add(member.position)
		}
		if !hopeful {
			p.possible.At(i + 1).Clear()
		}
	}
}

// requestOf is the request that the member in the given place is for.
func (c *celConstraint) requestOf(member int) *request {
	for _, all := range c.covered {
		if member < all[0].count {
			return all[0]
		}
		member -= all[0].count
	}
	return nil
}
