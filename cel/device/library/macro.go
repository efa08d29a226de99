// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Macros bind a list expression to one of these names, so that it is evaluated once. Expressions can't contain these names.
const (
	thisList  = "@list"
	otherList = "@others"
)

func macros() []cel.Macro {
	result := []cel.Macro{
		cel.ReceiverMacro("box", 3, box),
		cel.ReceiverMacro("box", 4, box),
		cel.ReceiverMacro("paired", 4, paired),
		cel.ReceiverMacro("segments", 3, segments),
	}
	for _, function := range []string{Connected, Clique, Ring, Path} {
		result = append(result, cel.ReceiverMacro(function[1:], 3, func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			names, failure := namesOf(f, function[1:], args[:2])
			if failure != nil {
				return nil, failure
			}
			return named(f, thisList, target, names[0], func(list func() ast.Expr) ast.Expr {
				return f.NewCall(function, mapped(f, list(), names[0], mapped(f, list(), names[1], args[2])))
			}), nil
		}))
	}
	return result
}

func box(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	names, failure := namesOf(f, "box", args[:1])
	if failure != nil {
		return nil, failure
	}
	return f.NewCall(Box, append([]ast.Expr{mapped(f, target, names[0], args[1])}, args[2:]...)...), nil
}

func paired(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	names, failure := namesOf(f, "paired", args[1:3])
	if failure != nil {
		return nil, failure
	}
	return named(f, otherList, args[0], names[0], func(others func() ast.Expr) ast.Expr {
		relation := mapped(f, target, names[0], mapped(f, others(), names[1], args[3]))
		return f.NewCall(Paired, relation, f.NewMemberCall("size", others()))
	}), nil
}

func segments(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	names, failure := namesOf(f, "segments", args[1:2])
	if failure != nil {
		return nil, failure
	}
	return f.NewCall(Segments, mapped(f, target, names[0], args[2]), args[0]), nil
}

// namesOf returns the element names in the arguments of a macro.
func namesOf(f cel.MacroExprFactory, macro string, args []ast.Expr) ([]string, *cel.Error) {
	var names []string
	for _, arg := range args {
		if arg.Kind() != ast.IdentKind || arg.AsIdent() == f.AccuIdentName() {
			return nil, f.NewError(arg.ID(), macro+"() variable name must be a simple identifier")
		}
		names = append(names, arg.AsIdent())
	}
	if len(names) == 2 && names[0] == names[1] {
		return nil, f.NewError(args[1].ID(), macro+"() needs two different variable names")
	}
	return names, nil
}

// named binds a list to a name for the expression in, as cel.bind does. If the list is already an identifier that the name
// element does not hide, named uses the identifier instead.
func named(f cel.MacroExprFactory, name string, list ast.Expr, element string, in func(list func() ast.Expr) ast.Expr) ast.Expr {
	if list.Kind() == ast.IdentKind && list.AsIdent() != element {
		return in(func() ast.Expr { return f.NewIdent(list.AsIdent()) })
	}
	return f.NewComprehension(f.NewList(), "#unused", name, list, f.NewLiteral(types.False), f.NewIdent(name),
		in(func() ast.Expr { return f.NewIdent(name) }))
}

// mapped returns the syntax of list.map(name, value).
func mapped(f cel.MacroExprFactory, list ast.Expr, name string, value ast.Expr) ast.Expr {
	return f.NewComprehension(list, name, f.AccuIdentName(), f.NewList(), f.NewLiteral(types.True),
		f.NewCall(operators.Add, f.NewAccuIdent(), f.NewList(value)), f.NewAccuIdent())
}
