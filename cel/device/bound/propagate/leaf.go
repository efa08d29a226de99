// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device"

// MaxArity is the maximum number of devices that a tabulated part of an expression may refer to.
const MaxArity = 2

// A Leaf is a part of an expression that refers to at most two devices, by iteration variables, and not to the set. CEL evaluates
// it once for each device or pair, and [leafTable] stores the result. Parts that differ only in the names of variables share a
// leaf.
type Leaf struct {
	// Names are the names of the variables in the expression.
	Names []string
	// Index is the index in Problem.Leaves.
	Index int
	// Nodes is the number of nodes of the syntax tree.
	Nodes int
	// Base is the leaf to which this leaf adds the constant Added, or nil if the leaf has another form.
	Base  *Leaf
	Added int64
	// Part plans the evaluation on its first call. It returns nil if the part can't be planned.
	Part func() *device.Part
}

// A Value is a leaf for the devices in given slots. It is a condition and a quantity.
type Value struct {
	*Leaf
	// Slots are the slots of the leaf's variables.
	Slots []int
}

// IsColumn reports whether the slot is the only variable of the value.
func (v Value) IsColumn(slot int) bool { return len(v.Slots) == 1 && v.Slots[0] == slot }
