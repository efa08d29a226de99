// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/tree"
)

// guard is a leaf of at most one device that must be well-behaved for all devices that
// are or may come into the set. There are no bounds otherwise.
//
// It is needed for what may abort the evaluation of the whole expression. Where such a
// part stands in a leaf, it is enough to look whether the leaf aborts for any device:
//
//	devices.all(d, d.attributes[x].model in ['a', 'b'])
//
// A function that panics if its operand has failed is asked about the whole set. It is enough to look
// whether a value in the list fails for any device:
//
//	devices.map(d, d.attributes[x].rails).flatten().distinct().size() == 2
type guard struct {
	leaf *leaf
	against
}

// against is what a leaf must not do.
type against int

const (
	aborting against = iota
	// failing or aborting.
	failing
	// anything but true and false.
	notBool
	// anything but an int of which as many as a set has devices can be added.
	far
	misbehaviours
)

// misbehaves reports whether the entry is what a guard is against.
func (e *entry) misbehaves(how against) bool {
	switch how {
	case aborting:
		return e.aborts
	case failing:
		return e.aborts || e.outcome == Error
	case far:
		return e.aborts || e.number.open || e.number.isNever() || e.number.fails || isFar(e.number)
	default:
		return e.aborts || e.outcome != True && e.outcome != False
	}
}

// guarding finds guards for an analyzer.
type guarding struct{ analyzer *analyzer }

// guardLeaf makes the leaf of a part the guard of all in it that may abort.
func (g guarding) guardLeaf(l *leaf, expr ast.Expr) {
	if len(l.names) > 1 {
		return
	}
	before := g.analyzer.normal.unguarded.Len()
	tree.Visit(expr, func(e ast.Expr, _ tree.Names) { g.analyzer.normal.unguarded.Delete(e.ID()) })
	if g.analyzer.normal.unguarded.Len() < before {
		g.analyzer.guards = append(g.analyzer.guards, guard{l, aborting})
	}
}

// guardOperand guards a function of the set, if the operand is a list that can be
// looked at device by device.
func (g guarding) guardOperand(expr ast.Expr, s scope) bool {
	if !tree.IsCall(expr, "flatten") || !expr.AsCall().IsMemberFunction() || len(expr.AsCall().Args()) > 0 {
		return false
	}
	guards, ok := g.guardsOf(expr.AsCall().Target(), s)
	if ok {
		g.analyzer.guards = append(g.analyzer.guards, guards...)
	}
	return ok
}

// guardsOf returns what makes sure that an expression is a list and does not fail.
func (g guarding) guardsOf(list ast.Expr, s scope) ([]guard, bool) {
	switch {
	case list.Kind() == ast.IdentKind:
		_, hidden := s[list.AsIdent()]
		return nil, device.IsSet(list.AsIdent()) && !hidden
	case list.Kind() != ast.ComprehensionKind:
		return nil, false
	}
	c := list.AsComprehension()
	keeps, element, ok := tree.CollectionOf(c)
	if !ok {
		return nil, false
	}
	guards, ok := g.guardsOfDevices(c.IterRange(), s)
	if !ok {
		return nil, false
	}
	within := s.within(c, g.analyzer.newSlot())
	if keeps != nil && !g.guardedBy(&guards, keeps, within, notBool) {
		return nil, false
	}
	return guards, g.guardedBy(&guards, element, within, failing)
}

// guardsOfDevices is guardsOf for a list of devices.
func (g guarding) guardsOfDevices(list ast.Expr, s scope) ([]guard, bool) {
	if _, ok := g.analyzer.deviceList(list, s); !ok {
		return nil, false
	}
	return g.guardsOf(list, s)
}

// guardedBy adds a guard of a part that speaks of one device.
func (g guarding) guardedBy(guards *[]guard, part ast.Expr, s scope, how against) bool {
	free, single := references(part, s)
	if !single || len(free) > 1 {
		return false
	}
	*guards = append(*guards, guard{g.analyzer.newLeaf(part, free), how})
	return true
}

// misbehaviour has, for each way to misbehave, the devices for which a leaf does.
type misbehaviour [misbehaviours]bitset.Set

// newMisbehaviour looks at the entries of a leaf: one for each device, or one for all.
func newMisbehaviour(entries []entry, devices int) misbehaviour {
	var result misbehaviour
	for how := range misbehaviours {
		result[how] = bitset.New(devices)
		for i := range devices {
			if entries[min(i, len(entries)-1)].misbehaves(how) {
				result[how].Add(i)
			}
		}
	}
	return result
}

// mayAbort reports whether a leaf misbehaves that guards something, for a device that is
// or may come into the set.
func (s *state) mayAbort() bool {
	for _, g := range s.tables.guards {
		c := s.column(g.leaf)
		if c == nil || c.misbehaviour[g.against].Meets(s.Chosen) || c.misbehaviour[g.against].Meets(s.Domain) {
			return true
		}
	}
	return s.aborted || s.err != nil
}
