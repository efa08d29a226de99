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

// Layout holds the positions and groups of the members of a set that an expression reads.
type Layout struct {
	// At holds the coordinates that box() reads, per member; nil if they can't be evaluated. Circles holds the lengths of the
	// circular coordinates.
	At      [][]int64
	Circles []int64
	// Groups holds the expression under distinct() and its value, per member.
	Groups []string
}

// Add adds the positions and groups that an expression reads of the members. A member may be nil. Add charges the budget.
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

// each yields the value of nodes.map(n, of) for each member where it can be evaluated. It returns false for any other list, and
// if the value can't be compiled.
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
