// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// boundOptional is the name of the optional value inside optMap and optFlatMap. It is not a valid identifier, so that no
// expression can use it.
const boundOptional = "@optional"

// optionalMacros replaces CEL's macros optMap and optFlatMap. CEL's macros duplicate the value that they are called on, so a
// chain of ten calls makes a thousand copies of the first value. The macros here bind the value to a name, as cel.bind does.
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

// bind returns the expression in with name bound to value. The result is a loop over an empty list with value as the
// accumulator.
func bind(f cel.MacroExprFactory, name string, value, in ast.Expr) ast.Expr {
	return f.NewComprehension(f.NewList(), "#unused", name, value, f.NewLiteral(types.False), f.NewIdent(name), in)
}
