// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

const (
	// mostDepth is how deep calls are nested.
	mostDepth = 3
	// mostLength is about how long an expression gets, so that it can be a constraint.
	mostLength = 8000
	// mostWritten is how many elements are written out.
	mostWritten = 40
)

// generator makes one expression. Its choices are bytes: the same ones make the same
// expression, and where there are no more the simplest is chosen.
type generator struct {
	calls  *Calls
	genome []byte
	// length is that of all parts so far, names is how many variables were bound.
	length, names int
	// loops is how many loops are around this place.
	loops int
}

func (g *generator) choose(n int) int {
	if len(g.genome) == 0 || n <= 1 {
		return 0
	}
	choice := int(g.genome[0]) % n
	g.genome = g.genome[1:]
	return choice
}

func (g *generator) one(options ...string) string {
	result := options[g.choose(len(options))]
	g.length += len(result)
	return result
}

// repetitions is how often a text of some length is repeated.
func (g *generator) repetitions(of int) int {
	n := []int{1, 2, 10, 50, 200, 1000, 3000}[g.choose(7)]
	return max(1, min(n, (mostLength-g.length)/max(1, of)))
}

// name returns one that no other variable has.
func (g *generator) name() string {
	g.names++
	return fmt.Sprintf("v%d", g.names)
}

// root is a bool: the call, often, and nothing else that costs much.
func (g *generator) root(c *Call) (string, bool) {
	loops, size := g.choose(3), []int{1, 10, 30}[g.choose(3)]
	var before, after strings.Builder
	for range loops {
		fmt.Fprintf(&before, "[%s].all(l%d, ", strings.TrimSuffix(strings.Repeat("1,", size), ","), g.loops)
		after.WriteString(")")
		g.loops++
	}
	g.length += before.Len()
	call, ok := g.call(c, map[string]*types.Type{}, mostDepth)
	if !ok {
		return "", false
	}
	// Whatever the result is, a list of it has a size.
	return before.String() + "[" + call + "].size() == 1" + after.String(), true
}

// call is a call with operands that fit.
func (g *generator) call(c *Call, bound map[string]*types.Type, depth int) (string, bool) {
	parameters := c.Overload.ArgTypes()
	arguments := make([]string, len(parameters))
	for i, t := range parameters {
		var ok bool
		if arguments[i], ok = g.value(g.concrete(t, bound), depth-1); !ok {
			return "", false
		}
	}
	return written(c, arguments), true
}

// concrete replaces type parameters, by the same types in one call.
func (g *generator) concrete(t *types.Type, bound map[string]*types.Type) *types.Type {
	switch t.Kind() {
	case types.TypeParamKind:
		name := t.TypeName()
		if bound[name] == nil {
			bound[name] = []*types.Type{types.IntType, types.StringType, types.NewListType(types.IntType), types.BoolType, types.DoubleType}[g.choose(5)]
		}
		return bound[name]
	case types.ListKind:
		return types.NewListType(g.concrete(t.Parameters()[0], bound))
	case types.MapKind:
		return types.NewMapType(g.concrete(t.Parameters()[0], bound), g.concrete(t.Parameters()[1], bound))
	case types.OpaqueKind:
		if optional(t) {
			return types.NewOptionalType(g.concrete(t.Parameters()[0], bound))
		}
	}
	return t
}

// written is a call as it stands in a text.
func written(c *Call, arguments []string) string {
	name := c.Function
	if symbol, ok := operators.FindReverseBinaryOperator(name); ok && len(arguments) == 2 {
		return "(" + arguments[0] + " " + symbol + " " + arguments[1] + ")"
	}
	switch name {
	case operators.Conditional:
		return "(" + arguments[0] + " ? " + arguments[1] + " : " + arguments[2] + ")"
	case operators.Index:
		return arguments[0] + "[" + arguments[1] + "]"
	case operators.OptIndex:
		return arguments[0] + "[?" + arguments[1] + "]"
	case operators.OptSelect:
		return arguments[0] + ".?a"
	case operators.LogicalNot:
		return "!" + arguments[0]
	case "scores":
		return "managedCluster.scores(" + arguments[1] + ")" // only it has any
	case operators.Negate:
		return "-" + arguments[0]
	}
	if c.Overload.IsMemberFunction() {
		return arguments[0] + "." + name + "(" + strings.Join(arguments[1:], ", ") + ")"
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// Call is what a search is about: one overload of a function.
type Call struct {
	Function string
	Overload *decls.OverloadDecl
}

// String is the name of the overload with its function.
func (c *Call) String() string { return c.Function + " " + c.Overload.ID() }
