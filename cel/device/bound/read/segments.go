// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// segmentsFunction reads the function segments if the size is a constant, and the key refers only to one device.
func (a *analyzer) segmentsFunction(args []ast.Expr, s normal.Scope) propagate.Condition {
	size, constant := tree.Literal[types.Int](a.normal.Reduce(args[1], s))
	key, list, over, ok := a.mapOf(args[0], s)
	if !ok || !constant || size < 1 {
		return propagate.Open{}
	}
	free, single := normal.References(key, over.scope)
	if !single || len(free) != 1 || free[0] != over.Variable {
		return propagate.Open{}
	}
	return a.NewSegments(list, a.newLeaf(key, free), int64(size))
}
