// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

// A Guard is a leaf that must not misbehave for any chosen or possible device. If it does, there are no bounds. The leaf has at
// most one variable.
//
// Guards are needed for parts that may abort the evaluation of the whole expression. If such a part is inside a leaf, it is
// enough that the leaf aborts for no device:
//
//	devices.all(d, d.attributes[x].model in ['a', 'b'])
//
// A function of the set may panic if its operand has failed. Then it is enough that no value of its list fails:
//
//	devices.map(d, d.attributes[x].rails).flatten().distinct().size() == 2
type Guard struct {
	Leaf *Leaf
	Against
}

// Against is a kind of misbehaviour.
type Against int

const (
	// Aborting ends the evaluation of the whole expression.
	Aborting Against = iota
	// Failing is an error, or aborting.
	Failing
	// NotBool is any value except true and false.
	NotBool
	// Far is any value except an int near enough to zero that a sum over a set can't overflow.
	Far
	misbehaviours
)
