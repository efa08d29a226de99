// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel"
)

// AST returns the checked expression. The caller must not modify it.
func (e *Expression) AST() *ast.AST { return e.program.AST() }

// Part is a compiled part of an expression with variables for devices.
type Part struct {
	part *cel.Part
}

// Part compiles a part of the expression, as [cel.Program.Part] does.
func (e *Expression) Part(tree *ast.AST, expr ast.Expr) (*Part, error) {
	part, err := e.program.Part(tree, expr)
	if err != nil {
		return nil, err
	}
	return &Part{part: part}, nil
}

// Variable binds a device to the name of a variable.
type Variable struct {
	Name   string
	Device *Device
}

// Value evaluates the part with the variables, as [cel.Part.Value] does.
func (p *Part) Value(ctx context.Context, budget *cel.Budget, variables ...Variable) (ref.Val, error) {
	return p.part.Value(ctx, variableActivation(variables), budget)
}

type variableActivation []Variable

func (v variableActivation) ResolveName(name string) (any, bool) {
	for i := range v {
		if v[i].Name == name {
			return v[i].Device, true
		}
	}
	return nil, false
}

func (v variableActivation) Parent() celgo.Activation { return nil }
