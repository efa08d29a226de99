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

// Variable is an expression over one element of the input, which others read by its name, as
// ValidatingAdmissionPolicy has them. In it the element has the name that [Config.Element]
// says, and variables before it are variables.<name>. An expression reads the variable of any
// element x as x.variables.<name>.
//
// What is read is written out where it is read: an expression with variables is the
// expression that one would have written without them. It has the same value, the same
// failures and the same cost.
type Variable struct {
	// Name is an identifier of CEL.
	Name string
	// Expression may be of any type.
	Expression string
}

// Element is what variables are of.
type Element struct {
	// Name is what variables call it.
	Name string
	Type *cel.Type
	// List is the variable of the input that the element is in. Variables are about one
	// element and can't read it.
	List string
}

// MaxVariables is the number of variables that an expression may have.
const MaxVariables = 32

// source is what is compiled, as a key.
type source struct {
	result     resultType
	expression string
	// variables has names and texts, with their lengths.
	variables string
}

func newSource(result resultType, expression string, variables []Variable) source {
	var all strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&all, "%d:%s%d:%s", len(v.Name), v.Name, len(v.Expression), v.Expression)
	}
	return source{result, expression, all.String()}
}

// length is about that of all texts, in bytes.
func (s source) length() int { return len(s.expression) + len(s.variables) }

// lengthOf is the length of all texts, in bytes.
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

// checkVariables refuses what can't be read, or is too much.
func (e *Environment) checkVariables(variables []Variable) error {
	names := make(map[string]bool, len(variables))
	for _, v := range variables {
		switch {
		case e.element.Name == "":
			return &Error{Reason: ReasonInvalid, Message: "variables can't be defined for this kind of input"}
		case len(variables) > MaxVariables:
			return &Error{Reason: ReasonTooLong, Message: fmt.Sprintf("there are %d variables, the limit is %d", len(variables), MaxVariables)}
		case names[v.Name]:
			return &Error{Reason: ReasonInvalid, Variable: v.Name, Message: "another variable has this name: rename one of them"}
		}
		names[v.Name] = true
	}
	return nil
}

// write parses variables and checks their types.
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
			fmt.Sprintf("a variable is about one %s and can't read %s: compare variables in the expression", e.element.Name, e.element.List))
	}
	rename(syntax.Expr(), e.element.Name, boundElement)
	if err := w.writeOut(v.Expression, parsed, true); err != nil {
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

// free lists where an expression reads a variable from outside.
func free(expr ast.Expr, name string) []ast.Expr {
	var result []ast.Expr
	tree.Visit(expr, func(part ast.Expr, hidden tree.Names) {
		if tree.IsIdent(part, name) && !hidden.Has(name) {
			result = append(result, part)
		}
	})
	return result
}

// rename has a free variable of an expression called something else.
func rename(expr ast.Expr, from, to string) {
	for _, part := range free(expr, from) {
		part.SetKindCase(ast.NewExprFactory().NewIdent(part.ID(), to))
	}
}
