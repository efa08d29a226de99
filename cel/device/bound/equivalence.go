// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/google/cel-go/common/ast"

// equivalence is equality of bools. Written with other operators it can be propagated, and it fails as it should: if
// either side does. Each side is there twice then, so that this is done for one in another only once: of a chain of n
// equalities 2^n parts would be made.
func (a *analyzer) equivalence(left, right ast.Expr, s scope) condition {
	before := a.equivalences
	l, r := a.condition(left, s), a.condition(right, s)
	switch {
	case isOpen(l) || isOpen(r):
		return open{}
	case a.equivalences > before:
		return biconditional{l, r}
	}
	a.equivalences++
	return a.newOr(a.newAnd(l, r), a.newAnd(newNot(l), newNot(r)))
}

// biconditional is an equality of bools that is not propagated.
type biconditional struct{ left, right condition }

func (n biconditional) bound(s *state) Outcome {
	right := n.right.bound(s)
	return n.left.bound(s).choose(right, right.not())
}

func (n biconditional) negation() condition { return biconditional{n.left, newNot(n.right)} }
