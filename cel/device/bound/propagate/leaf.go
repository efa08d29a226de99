// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device"

// MaxArity is the maximum number of devices that a leaf or a predicate may refer to.
const MaxArity = 2

// A Leaf is a part of an expression that refers to at most two devices, by iteration variables, and not to the set. CEL
// evaluates the leaf once for each device or pair, and [leafTable] stores the values. Parts that differ only in the names of
// variables share a leaf.
type Leaf struct {
	// Names are the names of the leaf's device variables in the expression.
	Names []string
	// Index is the index in Problem.Leaves.
	Index int
	// Nodes is the number of nodes of the leaf's syntax tree.
	Nodes int
	// If the leaf is the sum of another leaf and a constant, Base is the other leaf and Added the constant. Otherwise Base is
	// nil.
	Base  *Leaf
	Added int64
	// Part prepares the evaluation on its first call and returns the same part later. It returns nil if CEL can't prepare the
	// part.
	Part func() *device.Part
}

// A Value is a leaf applied to the devices in given slots. It is both a Condition and a Quantity.
type Value struct {
	*Leaf
	// Slots has the slot of each variable of the leaf.
	Slots []int
}

// IsColumn reports whether the value has exactly one variable, in the given slot.
func (v Value) IsColumn(slot int) bool { return len(v.Slots) == 1 && v.Slots[0] == slot }
