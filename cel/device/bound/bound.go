// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"slices"

	"github.com/celset/celset/cel/device"
)

// Analysis is what was understood of an expression for sets of one size. It is
// safe for concurrent use.
type Analysis struct {
	// usable: all errors are absorbed as they should. conjuncts leaves out those that
	// are true for every set.
	usable    bool
	conjuncts []condition
	leaves    []*leaf
	distincts []distinctSize
	slots     int
}

// Understood tells whether bounds can tell anything at all.
func (a *Analysis) Understood() bool {
	return a.usable && (len(a.conjuncts) == 0 || slices.ContainsFunc(a.conjuncts, func(c condition) bool { return !isOpen(c) }))
}

// What bounds may take is limited, because expressions and devices are untrusted:
// quantifiers in quantifiers cost the number of devices to the power of their depth.
const (
	// maxEntries is how many entries the tables of an expression may have together, at
	// less than a hundred bytes each.
	maxEntries = 1 << 17
	// maxWork is how many devices one call of Hopeless or Bound may look at, which
	// takes some ten milliseconds.
	maxWork = 1 << 18
)

// Fits tells whether the tables for that many devices are small enough to be made.
func (a *Analysis) Fits(devices int) bool {
	entries := 0
	for _, l := range a.leaves {
		size := 1
		for range l.slots {
			if size *= devices; size > maxEntries {
				return false
			}
		}
		if entries += size; entries > maxEntries {
			return false
		}
	}
	return true
}

// Tables are the bounds of an expression over the given devices. They are filled
// as they are used, so they must not be used concurrently.
type Tables struct {
	*Analysis
	ctx         context.Context
	tables      []*table
	evaluations int64
	// unabsorbed: an error was met that nothing absorbs.
	unabsorbed bool
	// work counts the devices that the call looked at; exhausted: they were too many.
	work      int
	exhausted bool
	scratch   scratch
}

// scratch is memory for one call of Bound after the other.
type scratch struct {
	state    state
	possible Bits
}

// Tabulate prepares the bounds for sets of the given devices. CEL is asked later,
// for each entry that is needed; ctx interrupts that.
func (a *Analysis) Tabulate(ctx context.Context, devices []*device.Device) *Tables {
	t := &Tables{Analysis: a, ctx: ctx}
	for _, l := range a.leaves {
		t.tables = append(t.tables, t.newTable(l, devices))
	}
	t.scratch.possible = NewBits(len(devices))
	return t
}

// Evaluations counts how often CEL was asked for an entry.
func (t *Tables) Evaluations() int64 { return t.evaluations }

// Partial is a set of which a part is chosen.
type Partial struct {
	// Chosen devices are in the set. Possible ones may be added; the two have no
	// device in common.
	Chosen, Possible Bits
	// Left is the number of devices to be added.
	Left int
}

// state is a partial set in the course of an evaluation.
type state struct {
	Partial
	tables *Tables
	// slots has the devices that the iteration variables stand for.
	slots []int
	// shallow: quantifiers look at chosen devices only, which is cheaper and tells
	// less.
	shallow bool
}

// begin prepares for looking at a partial set. It is nil if nothing can be told.
func (t *Tables) begin(p Partial) *state {
	s := &t.scratch.state
	s.Partial, s.tables = p, t
	if len(s.slots) < t.slots {
		s.slots = make([]int, t.slots)
	}
	if !t.usable || t.exhausted || t.mayFailUnabsorbed(s) {
		return nil
	}
	t.work = 0
	return s
}

// Exhausted tells that the expression is too expensive to have bounds. Nothing is
// looked at any more then.
func (t *Tables) Exhausted() bool { return t.exhausted }

// spend counts a device that is looked at. It is false if there were too many:
// whatever is asked is open then.
func (t *Tables) spend() bool {
	t.work++
	t.exhausted = t.exhausted || t.work > maxWork
	return !t.exhausted
}

// Hopeless tells whether no completion satisfies the expression and none makes it
// fail. It removes devices from p.Possible that are in no other completions.
func (t *Tables) Hopeless(p Partial) bool {
	s := t.begin(p)
	if s == nil {
		return false
	}
	for removed := true; removed && !t.exhausted; {
		removed = false
		for _, c := range t.conjuncts {
			if c.bound(s) == False {
				return !t.unabsorbed
			}
			removed = !isOpen(c) && t.probe(s, c) || removed
		}
		if s.Possible.Count() < s.Left {
			return !t.unabsorbed
		}
	}
	return false
}

// probe removes the devices from the possible ones that make the condition surely
// false when they are chosen. A completion with such a device is false, since
// false absorbs whatever the other conjuncts become.
func (t *Tables) probe(s *state, c condition) bool {
	if s.Left == 0 {
		return false
	}
	removed := false
	s.shallow = true
	defer func() { s.shallow = false }()
	t.scratch.possible.Set(s.Possible)
	t.scratch.possible.each(func(i int) bool {
		s.Possible.Remove(i)
		s.Chosen.Add(i)
		s.Left--
		surelyFalse := c.bound(s) == False || s.Possible.Count() < s.Left
		s.Left++
		s.Chosen.Remove(i)
		if surelyFalse {
			removed = true
		} else {
			s.Possible.Add(i)
		}
		return true
	})
	return removed
}

// Bound returns what the expression may become.
func (t *Tables) Bound(p Partial) Outcome {
	s := t.begin(p)
	if s == nil {
		return Open
	}
	result := True
	for _, c := range t.conjuncts {
		result = result.and(c.bound(s))
	}
	if t.unabsorbed {
		return Open
	}
	return result
}
