// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// selectorVariable is the name of the device in a device selector.
const selectorVariable = "device"

// DriverOf returns the only driver whose devices a checked device selector can select, or "" if it finds no such driver. The
// selector must be, or contain as a conjunct, device.driver == 'example.com'. If this conjunct is false, the selector is false,
// even if another conjunct fails.
func DriverOf(selector *ast.AST) string {
	for _, conjunct := range tree.Conjuncts(selector.Expr()) {
		if !tree.IsCall(conjunct, operators.Equals) {
			continue
		}
		args := conjunct.AsCall().Args()
		for i, arg := range args {
			if name, ok := tree.Literal[types.String](args[1-i]); ok && isDriver(arg) {
				return string(name)
			}
		}
	}
	return ""
}

func isDriver(expr ast.Expr) bool {
	return expr.Kind() == ast.SelectKind && !expr.AsSelect().IsTestOnly() && expr.AsSelect().FieldName() == driverField &&
		expr.AsSelect().Operand().Kind() == ast.IdentKind && expr.AsSelect().Operand().AsIdent() == selectorVariable
}
