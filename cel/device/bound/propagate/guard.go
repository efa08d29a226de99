// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

// Guard is a leaf of at most one device that must be well-behaved for all devices that
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
type Guard struct {
	Leaf *Leaf
	Against
}

// Against is a behaviour that a guard forbids.
type Against int

const (
	// Aborting ends the evaluation of the whole expression.
	Aborting Against = iota
	// Failing is failing or aborting.
	Failing
	// NotBool is anything but true and false.
	NotBool
	// Far is anything but an int of which as many as a set has devices can be added.
	Far
	misbehaviours
)
