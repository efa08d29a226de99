// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// OwnFunctions are the functions in the expression that Kubernetes does not have, by the names that they
// are called by, each once and in order.
func (e *Expression) OwnFunctions() []string {
	var names []string
	tree.Visit(e.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		if tree.IsCall(part, library.Functions...) {
			names = append(names, strings.TrimPrefix(part.AsCall().FunctionName(), "@"))
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}
