// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"maps"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/tree"
)

// cel.bind(x, init, body) gives a name to something that may speak of the set. It is
// read as what it means: the body with init in the place of x. CEL evaluates init when x
// is first asked for, so that the two fail alike.

// maxCopies limits the parts that one analysis makes: bindings in bindings grow
// exponentially.
const maxCopies = 1 << 14

// reduce replaces bindings at the top of an expression by what they mean, if that can
// be written down.
func (n *normalizer) reduce(expr ast.Expr, s scope) ast.Expr {
	if reduced, known := n.reduced[expr.ID()]; known {
		return reduced
	}
	result := expr
	if name, init, body, ok := tree.BindingOf(expr); ok {
		if body, ok := n.substitute(body, name, init, true); ok {
			n.traced(inlineBinding, expr, body)
			n.replace(expr, body, s)
			result = n.reduce(body, s)
		}
	}
	n.reduced[expr.ID()] = result
	return result
}

// again copies a part that is to stand in several places.
func (n *normalizer) again(expr ast.Expr) ast.Expr {
	result, ok := n.substituteParts(expr, nil)
	if !ok {
		return expr
	}
	return result
}

// replace notes that one part takes the place of another, and with it what has to be
// guarded.
func (n *normalizer) replace(old, by ast.Expr, s scope) {
	tree.Visit(old, func(e ast.Expr, _ tree.Names) { n.unguarded.Delete(e.ID()) })
	n.require(by, s)
}

// substitute copies an expression, with another expression in the place of a variable.
// It is false if that would mean something else, or become too large. bound tells that
// the variable is one of cel.bind.
func (n *normalizer) substitute(expr ast.Expr, name string, by ast.Expr, bound bool) (ast.Expr, bool) {
	c := &copier{normalizer: n, by: map[string]ast.Expr{name: by}, bound: bound, factory: ast.NewExprFactory(), ok: true}
	return c.copy(expr), c.ok
}

// substituteParts copies an expression, with other expressions in the place of parts by
// their number.
func (n *normalizer) substituteParts(expr ast.Expr, parts map[int64]ast.Expr) (ast.Expr, bool) {
	c := &copier{normalizer: n, parts: parts, factory: ast.NewExprFactory(), ok: true}
	return c.copy(expr), c.ok
}

// copier copies an expression, with expressions in the place of some variables.
type copier struct {
	*normalizer
	by      map[string]ast.Expr
	parts   map[int64]ast.Expr
	factory ast.ExprFactory
	// bound: the variables are those of cel.bind; lists counts those replaced that may be
	// a list.
	bound bool
	lists int
	ok    bool
}

func (c *copier) copy(expr ast.Expr) ast.Expr {
	if c.copies++; c.copies > maxCopies {
		c.ok = false
		return expr
	}
	if by, replaced := c.parts[expr.ID()]; replaced {
		return c.copyReplacement(by)
	}
	if expr.Kind() == ast.IdentKind {
		if by, replaced := c.by[expr.AsIdent()]; replaced {
			return c.copyReplacement(by)
		}
	}
	id := c.write.Node(c.write.TypeOf(expr), c.write.AST().ReferenceMap()[expr.ID()])
	switch expr.Kind() {
	case ast.LiteralKind:
		return c.factory.NewLiteral(id, expr.AsLiteral())
	case ast.IdentKind:
		return c.factory.NewIdent(id, expr.AsIdent())
	case ast.SelectKind:
		selection := expr.AsSelect()
		if selection.IsTestOnly() {
			return c.factory.NewPresenceTest(id, c.copy(selection.Operand()), selection.FieldName())
		}
		return c.factory.NewSelect(id, c.copy(selection.Operand()), selection.FieldName())
	case ast.CallKind:
		return c.copyCall(id, expr.AsCall())
	case ast.ListKind:
		return c.factory.NewList(id, c.copyAll(expr.AsList().Elements()), expr.AsList().OptionalIndices())
	case ast.MapKind:
		return c.copyMap(id, expr.AsMap())
	case ast.ComprehensionKind:
		return c.copyComprehension(id, expr.AsComprehension())
	default:
		c.ok = false
		return expr
	}
}

func (c *copier) copyAll(exprs []ast.Expr) []ast.Expr {
	result := make([]ast.Expr, len(exprs))
	for i, expr := range exprs {
		result[i] = c.copy(expr)
	}
	return result
}

// copyReplacement copies what takes the place of a variable. Its own variables are
// those of another place, and stay what they are.
func (c *copier) copyReplacement(expr ast.Expr) ast.Expr {
	if c.mayBeList(expr) {
		c.lists++
	}
	outer := c.by
	c.by = nil
	result := c.copy(expr)
	c.by = outer
	return result
}

// mayBeList tells whether the value of an expression may be a list. Lists have no order.
func (n *normalizer) mayBeList(expr ast.Expr) bool {
	if tree.IsCall(expr, operators.Add) {
		return n.mayBeList(expr.AsCall().Args()[0]) && n.mayBeList(expr.AsCall().Args()[1])
	}
	t := n.write.TypeOf(expr).Kind()
	return (t == types.ListKind || t == types.DynKind || t == types.TypeParamKind) &&
		!n.isHashable(expr) && !tree.IsCall(expr, "max", "min")
}

// copyCall gives up where a list that has a name is appended to: CEL appends to the list
// itself if it is empty, and the name stands for the longer one from then on.
func (c *copier) copyCall(id int64, call ast.CallExpr) ast.Expr {
	if call.IsMemberFunction() {
		return c.factory.NewMemberCall(id, call.FunctionName(), c.copy(call.Target()), c.copyAll(call.Args())...)
	}
	lists := c.lists
	if call.FunctionName() == operators.Add && len(call.Args()) == 2 {
		left := c.copy(call.Args()[0])
		if c.bound && c.lists > lists && c.mayBeList(call.Args()[1]) {
			c.ok = false
		}
		return c.factory.NewCall(id, call.FunctionName(), left, c.copy(call.Args()[1]))
	}
	return c.factory.NewCall(id, call.FunctionName(), c.copyAll(call.Args())...)
}

func (c *copier) copyMap(id int64, m ast.MapExpr) ast.Expr {
	entries := make([]ast.EntryExpr, len(m.Entries()))
	for i, e := range m.Entries() {
		entry := e.AsMapEntry()
		entries[i] = c.factory.NewMapEntry(c.write.Node(types.DynType, nil), c.copy(entry.Key()), c.copy(entry.Value()), entry.IsOptional())
	}
	return c.factory.NewMap(id, entries)
}

// copyComprehension renames the variables of a comprehension that would hide what the
// replacements speak of. In the result the iteration variables are not known any more, but
// no macro has one that speaks of their names.
func (c *copier) copyComprehension(id int64, of ast.ComprehensionExpr) ast.Expr {
	iterRange, init := c.copy(of.IterRange()), c.copy(of.AccuInit())
	outer := c.by
	c.by = maps.Clone(outer)
	names := [3]string{of.IterVar(), of.IterVar2(), of.AccuVar()}
	for _, name := range names {
		delete(c.by, name)
	}
	spoken := sets.New[string]()
	for _, by := range c.by {
		spoken = spoken.Union(variablesOf(by))
	}
	for i, name := range names {
		if spoken.Has(name) {
			names[i] = c.write.Name()
			c.by[name] = c.write.Ident(names[i], c.typeOf(name, of))
		}
	}
	condition, step, result := c.copy(of.LoopCondition()), c.copy(of.LoopStep()), c.copy(of.Result())
	c.by = outer
	if of.HasIterVar2() {
		return c.factory.NewComprehensionTwoVar(id, iterRange, names[0], names[1], names[2], init, condition, step, result)
	}
	return c.factory.NewComprehension(id, iterRange, names[0], names[2], init, condition, step, result)
}
