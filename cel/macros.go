// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// boundOptional is the name of the optional value while optMap and optFlatMap look at it. No
// expression can have such a name.
const boundOptional = "@optional"

// optionalMacros are optMap and optFlatMap of CEL, but for how often they name the value that
// they are called on. CEL's write it out twice, so that ten of them one after the other make
// a thousand copies of the first. These give it a name, as cel.bind does.
func optionalMacros() cel.EnvOption {
	return cel.Macros(
		cel.ReceiverMacro("optMap", 2, func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return mapOptional(f, "optMap", target, args, func(mapped ast.Expr) ast.Expr { return f.NewCall("optional.of", mapped) })
		}),
		cel.ReceiverMacro("optFlatMap", 2, func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return mapOptional(f, "optFlatMap", target, args, func(mapped ast.Expr) ast.Expr { return mapped })
		}),
	)
}

func mapOptional(f cel.MacroExprFactory, macro string, target ast.Expr, args []ast.Expr, wrap func(ast.Expr) ast.Expr) (ast.Expr, *cel.Error) {
	if args[0].Kind() != ast.IdentKind {
		return nil, f.NewError(args[0].ID(), macro+"() variable name must be a simple identifier")
	}
	value := func() ast.Expr { return f.NewIdent(boundOptional) }
	mapped := bind(f, args[0].AsIdent(), f.NewMemberCall("value", value()), args[1])
	return bind(f, boundOptional, target, f.NewCall(operators.Conditional,
		f.NewMemberCall("hasValue", value()), wrap(mapped), f.NewCall("optional.none"))), nil
}

// bind gives a value a name in an expression: a loop over nothing, with the value as
// accumulator.
func bind(f cel.MacroExprFactory, name string, value, in ast.Expr) ast.Expr {
	return f.NewComprehension(f.NewList(), "#unused", name, value, f.NewLiteral(types.False), f.NewIdent(name), in)
}
