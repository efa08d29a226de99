// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device"

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

// value is a leaf for the devices that the slots have: a condition and a quantity.
type value struct {
	*leaf
	// slots are those of the leaf's variables.
	slots []int
}

// isColumn reports whether the value is that of one device, the one in the slot.
func (v value) isColumn(slot int) bool { return len(v.slots) == 1 && v.slots[0] == slot }
