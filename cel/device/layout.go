// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/parser"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// Layout has the coordinates and groups of a set's members, as far as an expression reads them.
type Layout struct {
	// At[i] has the coordinates of member i that box() reads, or nil if they can't be evaluated. Circles has the lengths of the
	// circular coordinates.
	At      [][]int64
	Circles []int64
	// Groups[i] is the text "expression=value" for the expression that distinct() is applied to, evaluated for member i.
	Groups []string
}

// Add fills the layout for the calls of box() and distinct() in an expression. A member may be nil. The evaluations charge the
// budget.
func (l *Layout) Add(ctx context.Context, e *Expression, members []*Device, budget *cel.Budget) {
	tree.Visit(e.AST().Expr(), func(call ast.Expr, _ tree.Names) {
		switch {
		case tree.IsCall(call, library.Box):
			args := call.AsCall().Args()
			isOfMembers := e.each(ctx, args[0], members, budget, func(i int, _ ast.Expr, at ref.Val) { l.At[i] = integers(at) })
			if isOfMembers && len(args) > 2 {
				if circles, err := e.Part(e.AST(), args[2]); err == nil {
					value, _ := circles.Value(ctx, budget)
					l.Circles = integers(value)
				}
			}
		case tree.IsCall(call, "distinct"):
			e.each(ctx, call.AsCall().Target(), members, budget, func(i int, of ast.Expr, value ref.Val) {
				text, _ := parser.Unparse(of, e.AST().SourceInfo())
				l.Groups[i] = fmt.Sprintf("%s=%v", text, value.Value())
			})
		}
	})
}

// each evaluates the element of a list nodes.map(n, of) for each member, and yields the values. It skips members whose
// evaluation fails. It returns false if list has another form or the element can't be compiled.
func (e *Expression) each(ctx context.Context, list ast.Expr, members []*Device, budget *cel.Budget, yield func(i int, of ast.Expr, value ref.Val)) bool {
	if list.Kind() != ast.ComprehensionKind {
		return false
	}
	c := list.AsComprehension()
	keeps, of, ok := tree.CollectionOf(c)
	if !ok || keeps != nil || !tree.IsIdent(c.IterRange(), e.set) {
		return false
	}
	part, err := e.Part(e.AST(), of)
	for i, member := range members {
		if member == nil || err != nil {
			continue
		}
		if value, err := part.Value(ctx, budget, Variable{Name: tree.ElementVar(c), Device: member}); err == nil && !types.IsError(value) {
			yield(i, of, value)
		}
	}
	return err == nil
}

// integers returns the elements of a list of ints, or nil for any other value.
func integers(value ref.Val) (found []int64) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil
	}
	for i := list.Iterator(); i.HasNext() == types.True; {
		n, ok := i.Next().(types.Int)
		if !ok {
			return nil
		}
		found = append(found, int64(n))
	}
	return found
}
