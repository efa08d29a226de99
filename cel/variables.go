// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/tree"
)

// Variable is a named expression over one element of the input, as in ValidatingAdmissionPolicy. In the variable's expression,
// the element has the name in [Config.Element], and earlier variables are variables.<name>. The main expression reads the
// variable of any element x as x.variables.<name>.
//
// The compiler replaces each read of a variable by the variable's expression. So the main expression has the same value,
// failures and cost as if it were written without variables.
type Variable struct {
	// Name is an identifier of CEL.
	Name string
	// Expression may be of any type.
	Expression string
}

// Element describes the kind of element, such as a device, that each [Variable] reads.
type Element struct {
	// Name is the name of the element in the expressions of variables.
	Name string
	Type *cel.Type
	// List is the name of the input with all elements, such as "devices". The expression of a variable can't read this input.
	List string
}

// MaxVariables is the maximum number of variables of an expression.
const MaxVariables = 32

// source is the input of a compilation. It is the cache key.
type source struct {
	result     resultType
	expression string
	// variables has the names and texts of all variables, each with its length.
	variables string
}

func newSource(result resultType, expression string, variables []Variable) source {
	var all strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&all, "%d:%s%d:%s", len(v.Name), v.Name, len(v.Expression), v.Expression)
	}
	return source{result, expression, all.String()}
}

// length returns the approximate length of all texts in bytes.
func (s source) length() int { return len(s.expression) + len(s.variables) }

// lengthOf returns the length of all texts in bytes.
func lengthOf(expression string, variables []Variable) int {
	length := len(expression)
	for _, v := range variables {
		length += len(v.Name) + len(v.Expression)
	}
	return length
}

func withVariables(variables []Variable) string {
	if len(variables) == 0 {
		return ""
	}
	return " with its variables"
}

// checkVariables rejects variables if the environment has no [Element], if there are too many variables, or if two variables
// have the same name.
func (e *Environment) checkVariables(variables []Variable) error {
	names := make(map[string]bool, len(variables))
	for _, v := range variables {
		switch {
		case e.element.Name == "":
			return &Error{Reason: ReasonInvalid, Message: "variables can't be defined for this kind of input"}
		case len(variables) > MaxVariables:
			return &Error{Reason: ReasonTooLong, Message: fmt.Sprintf("there are %d variables, the limit is %d: remove some of them", len(variables), MaxVariables)}
		case names[v.Name]:
			return &Error{Reason: ReasonInvalid, Variable: v.Name, Message: "another variable has this name: rename one of them"}
		}
		names[v.Name] = true
	}
	return nil
}

// write parses the variables and checks their types. The result substitutes them in an expression.
func (e *Environment) write(variables []Variable) (*writer, error) {
	w := newWriter()
	for _, v := range variables {
		if err := e.writeOne(w, v); err != nil {
			return nil, err.in(v.Name)
		}
	}
	return w, nil
}

func (e *Environment) writeOne(w *writer, v Variable) *Error {
	parsed, err := e.parse(v.Expression)
	if err != nil {
		return err
	}
	syntax := parsed.NativeRep()
	if lists := free(syntax.Expr(), e.element.List); len(lists) > 0 {
		return positioned(ReasonInvalid, v.Expression, syntax.SourceInfo().GetStartLocation(lists[0].ID()),
			fmt.Sprintf("a variable reads one %s and can't read the list %s: compare variables in the expression", e.element.Name, e.element.List))
	}
	rename(syntax.Expr(), e.element.Name, boundElement)
	if err := w.substitute(v.Expression, parsed, true); err != nil {
		return err
	}
	written := ast.NewExprFactory().CopyExpr(syntax.Expr())
	if err := e.checkTree(parsed); err != nil {
		return err
	}
	if _, issues := e.env.Check(parsed); issues.Err() != nil {
		return e.mistyped(v.Expression, parsed, issues)
	}
	w.add(v.Name, written)
	return nil
}

// free returns the subexpressions that read the free variable with the name.
func free(expr ast.Expr, name string) []ast.Expr {
	var result []ast.Expr
	tree.Visit(expr, func(part ast.Expr, hidden tree.Names) {
		if tree.IsIdent(part, name) && !hidden.Has(name) {
			result = append(result, part)
		}
	})
	return result
}

// rename renames a free variable of an expression, in place.
func rename(expr ast.Expr, from, to string) {
	for _, part := range free(expr, from) {
		part.SetKindCase(ast.NewExprFactory().NewIdent(part.ID(), to))
	}
}
