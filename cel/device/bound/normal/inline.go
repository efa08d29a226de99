// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/tree"
)

// cel.bind(x, init, body) names a value, which may refer to the set. The normal form is body with init in place of x. CEL
// evaluates init only when x is first used, so both forms fail for the same sets.

// maxCopies limits the nodes that one analysis creates, because nested bindings grow exponentially.
const maxCopies = 1 << 14

// Reduce returns an expression without the bindings at its top. It keeps a binding that can't be replaced by its value.
func (n *Normalizer) Reduce(expr ast.Expr, s Scope) ast.Expr {
	if reduced, known := n.reduced[expr.ID()]; known {
		return reduced
	}
	result := expr
	if name, init, body, ok := tree.BindingOf(expr); ok {
		if body, ok := n.Substitute(body, name, init, true); ok {
			n.Traced(inlineBinding, expr, body)
			n.Replace(expr, body, s)
			result = n.Reduce(body, s)
		}
	}
	n.reduced[expr.ID()] = result
	return result
}

// Replace records that the part by replaces the part old, and updates the parts that need a guard (Unguarded).
func (n *Normalizer) Replace(old, by ast.Expr, s Scope) {
	tree.Visit(old, func(e ast.Expr, _ tree.Names) { n.Unguarded.Delete(e.ID()) })
	n.Require(by, s)
}

// Again returns a copy of a part, with new IDs, for a part that is used in several places.
func (n *Normalizer) Again(expr ast.Expr) ast.Expr {
	result, ok := n.SubstituteParts(expr, nil)
	if !ok {
		return expr
	}
	return result
}

// Substitute returns a copy of an expression with by in place of a variable. It returns false if this would change the value of
// the expression, or if too many nodes were copied. bound means that cel.bind declares the variable.
func (n *Normalizer) Substitute(expr ast.Expr, name string, by ast.Expr, bound bool) (ast.Expr, bool) {
	if bound && n.mayBeList(by) && n.isAppendedTo(expr, name) {
		return expr, false
	}
	result, ok := n.SubstituteParts(expr, nil)
	if !ok {
		return expr, false
	}
	n.rename(result, VariablesOf(by))
	var places []ast.Expr
	tree.Visit(result, func(e ast.Expr, hidden tree.Names) {
		if tree.IsIdent(e, name) && !hidden.Has(name) {
			places = append(places, e)
		}
	})
	for _, place := range places {
		if !n.put(place, by) {
			return expr, false
		}
	}
	return result, true
}

// SubstituteParts returns a copy of an expression with some parts replaced. parts maps the ID of a part to its replacement. It
// returns false if too many nodes were copied.
func (n *Normalizer) SubstituteParts(expr ast.Expr, parts map[int64]ast.Expr) (ast.Expr, bool) {
	if n.Copies += NodesOf(expr); n.Copies > maxCopies {
		return expr, false
	}
	result := ast.NewExprFactory().CopyExpr(expr)
	var places, by []ast.Expr
	if len(parts) > 0 {
		tree.Visit(result, func(e ast.Expr, _ tree.Names) {
			if part, replaced := parts[e.ID()]; replaced {
				places, by = append(places, e), append(by, part)
			}
		})
	}
	result.RenumberIDs(func(id int64) int64 {
		return n.Write.Node(n.Write.AST().GetType(id), n.Write.AST().ReferenceMap()[id])
	})
	for i, place := range places {
		if !n.put(place, by[i]) {
			return expr, false
		}
	}
	return result, true
}

// put overwrites the part place with a copy of by, including its type and its reference. Names in the copy keep their meaning.
func (n *Normalizer) put(place, by ast.Expr) bool {
	copied, ok := n.SubstituteParts(by, nil)
	if !ok {
		return false
	}
	place.SetKindCase(copied)
	checked := n.Write.AST()
	checked.SetType(place.ID(), checked.GetType(copied.ID()))
	delete(checked.ReferenceMap(), place.ID())
	if reference := checked.ReferenceMap()[copied.ID()]; reference != nil {
		checked.SetReference(place.ID(), reference)
	}
	return true
}

// rename renames variables of comprehensions in expr that would hide the names in spoken. The result has no references for
// iteration variables.
func (n *Normalizer) rename(expr ast.Expr, spoken sets.Set[string]) {
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		c := e.AsComprehension()
		names := [3]string{c.IterVar(), c.IterVar2(), c.AccuVar()}
		for i, name := range names {
			if !spoken.Has(name) {
				continue
			}
			names[i] = n.Write.Name()
			parts := []ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()}
			if name != c.AccuVar() {
				parts = parts[:2]
			}
			for _, part := range parts {
				ast.PostOrderVisit(part, ast.NewExprVisitor(func(e ast.Expr) {
					if tree.IsIdent(e, name) {
						e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), names[i]))
						n.Write.AST().SetReference(e.ID(), ast.NewIdentReference(names[i], nil))
					}
				}))
			}
		}
		e.SetKindCase(ast.NewExprFactory().NewComprehensionTwoVar(e.ID(), c.IterRange(), names[0], names[1], names[2],
			c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()))
	}))
}

// mayBeList reports whether an expression may be a list. CEL's max and min never return lists.
func (n *Normalizer) mayBeList(expr ast.Expr) bool {
	if tree.IsCall(expr, operators.Add) {
		return n.mayBeList(expr.AsCall().Args()[0]) && n.mayBeList(expr.AsCall().Args()[1])
	}
	t := n.Write.TypeOf(expr).Kind()
	return (t == types.ListKind || t == types.DynKind || t == types.TypeParamKind) &&
		!n.isHashable(expr) && !tree.IsCall(expr, "max", "min")
}

// isAppendedTo reports whether CEL may append to the list with the name. CEL appends to an empty list in place, so the name
// would later refer to the longer list.
func (n *Normalizer) isAppendedTo(expr ast.Expr, name string) bool {
	found := false
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		found = found || tree.IsCall(e, operators.Add) && len(e.AsCall().Args()) == 2 && !hidden.Has(name) &&
			VariablesOf(e.AsCall().Args()[0]).Has(name) && n.mayBeList(e.AsCall().Args()[1])
	})
	return found
}
