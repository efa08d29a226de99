// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// maxArity is how many devices a part of an expression may speak of to be
// tabulated.
const maxArity = 2

// leaf is a part of an expression that does not speak of the set, only of the
// devices that at most two variables stand for. It is evaluated by CEL, once for
// each device or pair, and remembered ([leafTable]). Parts that differ in the names
// of the variables only are one leaf.
type leaf struct {
	// names are the variables, by their name in the expression.
	names []string
	// index is the leaf's place in Analysis.leaves.
	index int
	// nodes is the number of nodes of its syntax tree.
	nodes int
	// base is the leaf to which a constant is added, nil if that is not how the leaf is written.
	base  *leaf
	added int64
	// part plans the evaluation when it is first needed. nil if that is impossible.
	part func() *device.Part
}

// newLeaf finds or makes the leaf of a part of the expression.
func (a *analyzer) newLeaf(expr ast.Expr, free []variable) *leaf {
	key := shapeOf(expr, free)
	if known := a.known[key]; known != nil {
		guarding{a}.guardLeaf(known, expr)
		return known
	}
	l := &leaf{index: len(a.leaves), nodes: nodesOf(expr), part: sync.OnceValue(func() *device.Part {
		part, err := a.expression.Part(a.normal.write.AST(), expr)
		if err != nil {
			return nil
		}
		return part
	})}
	for _, v := range free {
		l.names = append(l.names, v.name)
	}
	a.leaves = append(a.leaves, l)
	a.known[key] = l
	guarding{a}.guardLeaf(l, expr)
	if base, added, ok := addedConstant(expr); ok && len(free) == 1 {
		l.base, l.added = a.newLeaf(base, free), added
	}
	return l
}

// addedConstant recognizes "base + 1" and "base - 1".
func addedConstant(expr ast.Expr) (base ast.Expr, added int64, ok bool) {
	if !tree.IsCall(expr, operators.Add, operators.Subtract) {
		return nil, 0, false
	}
	base, constant := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	value, ok := tree.Literal[types.Int](constant)
	if tree.IsCall(expr, operators.Subtract) {
		return base, -int64(value), ok && value > -maxConstant
	}
	if !ok {
		base = constant
		value, ok = tree.Literal[types.Int](expr.AsCall().Args()[0])
	}
	return base, int64(value), ok
}

// entry is what a leaf is for one device or pair of devices.
type entry struct {
	known bool
	// aborts: the evaluation of the whole expression would end here, whatever else
	// stands in it.
	aborts bool
	// outcome of a leaf of type bool, number of one of type int.
	outcome Outcome
	number  number
	// key is equal for equal values, nil if that can't be told or the leaf fails.
	key any
	// elements are the keys of the different values in a list, in order, nil if it is none or one is not known.
	elements *[]any
}

// openEntry may be anything.
var openEntry = entry{known: true, outcome: Open, number: openNumber}

// entryOf classifies a value. What is neither bool nor int nor an error is open, but may have a key.
func entryOf(value ref.Val) entry {
	switch value := value.(type) {
	case types.Bool:
		return entry{known: true, outcome: outcomeOf(bool(value)), number: openNumber, key: value}
	case types.Int:
		return entry{known: true, outcome: Open, number: exactly(int64(value)), key: value}
	case types.String:
		return entry{known: true, outcome: Open, number: openNumber, key: value}
	case *types.Err:
		return entry{known: true, outcome: Error, number: never}
	case traits.Lister:
		e := openEntry
		if keys := keysIn(value); keys != nil {
			e.key = listKeyOf(keys)
			slices.SortFunc(keys, compareValues)
			keys = slices.Compact(keys)
			e.elements = &keys
		}
		return e
	default:
		return openEntry
	}
}

// smallText is the length of a text up to which it counts as a part of the entry.
const smallText = 16

// textSize is what the texts in the entry take, and the list of its elements.
func (e *entry) textSize() int {
	size := sizeOfText(e.key)
	if e.elements != nil {
		for _, key := range *e.elements {
			size += int(unsafe.Sizeof(key)) + smallText + sizeOfText(key)
		}
	}
	return size
}

func sizeOfText(key any) int {
	switch text := key.(type) {
	case types.String:
		if len(text) > smallText {
			return len(text) + smallText
		}
	case listKey:
		return len(text)
	}
	return 0
}

// value is a leaf for the devices that the slots have: a condition and a quantity.
type value struct {
	*leaf
	// slots are those of the leaf's variables.
	slots []int
}

func (v value) entry(s *state) *entry {
	e := s.entry(v)
	s.aborted = s.aborted || e.aborts
	return e
}

func (v value) bound(s *state) Outcome { return v.entry(s).outcome }
func (v value) number(s *state) number { return v.entry(s).number }

// isColumn reports whether the value is that of one device, the one in the slot.
func (v value) isColumn(slot int) bool { return len(v.slots) == 1 && v.slots[0] == slot }
