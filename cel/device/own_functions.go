// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// mathMacros are expanded to calls of other names.
var mathMacros = map[string]string{"math.@max": "math.greatest", "math.@min": "math.least"}

// OwnFunctions are the functions in the expression that Kubernetes does not have, by the names that they
// are called by, each once and in order.
func (e *Expression) OwnFunctions() []string {
	var names []string
	tree.Visit(e.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		if part.Kind() != ast.CallKind {
			return
		}
		name := part.AsCall().FunctionName()
		if strings.HasPrefix(name, "math.") || slices.Contains(library.Functions, name) {
			names = append(names, cmp.Or(mathMacros[name], strings.TrimPrefix(name, "@")))
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}
