// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

// A Guard is a leaf whose misbehaviour makes bounds invalid. If the leaf misbehaves for a chosen or possible device, the state
// has no bounds. The leaf has at most one variable.
//
// Guards are needed for parts that may abort the evaluation of the whole expression. If such a part is inside a leaf, the guard
// checks that the leaf aborts for no device:
//
//	devices.all(d, d.attributes[x].model in ['a', 'b'])
//
// A function of the set may panic if its operand has failed. Then the guard checks that no element of the operand fails:
//
//	devices.map(d, d.attributes[x].rails).flatten().distinct().size() == 2
type Guard struct {
	Leaf *Leaf
	Against
}

// Against is the kind of misbehaviour that a guard excludes.
type Against int

const (
	// Aborting means that the leaf aborts the evaluation of the whole expression.
	Aborting Against = iota
	// Failing means that the leaf is an error, or aborts.
	Failing
	// NotBool means that the leaf is neither true nor false.
	NotBool
	// Far means that the leaf is not an int, or an int so far from zero that a sum over a set may overflow.
	Far
	misbehaviours
)
