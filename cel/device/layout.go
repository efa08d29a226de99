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

// Layout is where members of a set are, as far as expressions say so.
type Layout struct {
	// At are the coordinates of each member by which it is in a box, nil if they can't be evaluated. Circles are what the box
	// goes around.
	At      [][]int64
	Circles []int64
	// Groups is what is counted different values of, for each member, with its value there.
	Groups []string
}

// Add adds what an expression says of members, of which some may be nil. That costs at most what the budget has.
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

// each yields the values of nodes.map(n, of) for the members, but where that fails. It is false for another list.
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

// integers are those of a list, nil for anything else.
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
