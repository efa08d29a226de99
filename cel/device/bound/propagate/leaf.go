// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device"

// MaxArity is how many devices a part of an expression may speak of to be
// tabulated.
const MaxArity = 2

// Leaf is a part of an expression that does not speak of the set, only of the
// devices that at most two variables stand for. It is evaluated by CEL, once for
// each device or pair, and remembered ([leafTable]). Parts that differ in the names
// of the variables only are one leaf.
type Leaf struct {
	// Names are the variables, by their name in the expression.
	Names []string
	// Index is the place in Problem.Leaves.
	Index int
	// Nodes is the number of nodes of its syntax tree.
	Nodes int
	// Base is the leaf to which a constant is added, nil if that is not how the leaf is written.
	Base  *Leaf
	Added int64
	// Part plans the evaluation when it is first needed. nil if that is impossible.
	Part func() *device.Part
}

// Value is a leaf for the devices that the slots have: a condition and a quantity.
type Value struct {
	*Leaf
	// Slots are those of the leaf's variables.
	Slots []int
}

// IsColumn reports whether the value is that of one device, the one in the slot.
func (v Value) IsColumn(slot int) bool { return len(v.Slots) == 1 && v.Slots[0] == slot }
