// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
	"github.com/celset/celset/internal/testing/cases"
)

// part draws a part of an expression over the devices d and o. The part has <d> and <o> for the devices, unless a variable of
// the same name hides them.
func part(t *rapid.T, depth int, hidden ...string) string {
	variable := func() string {
		name := rapid.SampledFrom(append([]string{"d", "o"}, hidden...)).Draw(t, "variable")
		if slices.Contains(hidden, name) {
			return name
		}
		return "<" + name + ">"
	}
	if depth == 0 {
		return rapid.SampledFrom([]string{
			"1", "2", "1u", "0.5", "1.0", "'1'", "b'1'", "'a'", "'\"'", "true", "null",
			variable(), "dyn(" + variable() + ").x", "dyn(" + variable() + ").y", "has(dyn(" + variable() + ").x)", "dyn(" + variable() + ").?x",
		}).Draw(t, "leaf")
	}
	next := func() string { return "dyn(" + part(t, rapid.IntRange(0, depth-1).Draw(t, "depth"), hidden...) + ")" }
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return "(" + next() + rapid.SampledFrom([]string{" + ", " - ", " == "}).Draw(t, "operator") + next() + ")"
	case 1:
		return "size(" + next() + ")"
	case 2:
		return next() + ".size()"
	case 3:
		return "[" + next() + ", " + next() + "]"
	case 4:
		return "[" + rapid.SampledFrom([]string{"", "?"}).Draw(t, "optional") + "optional.of(" + next() + ")]"
	case 5:
		return "{'k': " + next() + "}"
	case 6:
		return "(" + next() + " == 1 ? " + next() + " : " + next() + ")"
	default:
		list := next()
		name := rapid.SampledFrom([]string{"i", "d", "o"}).Draw(t, "iteration")
		body := "dyn(" + part(t, depth-1, append(hidden, name)...) + ")"
		macro := rapid.SampledFrom([]string{"map(%s, %s)", "filter(%s, %s == 1)", "exists(%s, %s == 1)", "all(%s, %s == 1)", "exists_one(%s, %s == 1)"}).Draw(t, "macro")
		return list + "." + fmt.Sprintf(macro, name, body)
	}
}

func source(part string) string { return strings.NewReplacer("<", "", ">", "").Replace(part) }

// numbered replaces each device in a part by a number, in the order of first appearance.
func numbered(part string) string {
	if d, o := strings.Index(part, "<d>"), strings.Index(part, "<o>"); o >= 0 && (d < 0 || o < d) {
		return strings.NewReplacer("<o>", "$0", "<d>", "$1").Replace(part)
	}
	return strings.NewReplacer("<d>", "$0", "<o>", "$1").Replace(part)
}

// shapesIn returns the shapes of the operands of the only "<" in an expression.
func shapesIn(expression *device.Expression) []string {
	var result []string
	ast.PreOrderVisit(expression.AST().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if !tree.IsCall(e, operators.Less) {
			return
		}
		for _, operand := range e.AsCall().Args() {
			free, _ := References(operand, Scope{"d": DeviceIn(0), "o": DeviceIn(1)})
			result = append(result, ShapeOf(operand, free))
		}
	}))
	return result
}

// TestShapesDistinguishParts checks that two parts have the same shape only if they are equal up to exchanging devices. Parts
// with the same shape share a table.
func TestShapesDistinguishParts(t *testing.T) {
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	same, different := 0, 0
	cases.CheckN(t, cases.Of(400, 2000), func(rt *rapid.T) {
		one := part(rt, rapid.IntRange(0, 3).Draw(rt, "depth of one"))
		other := one
		switch rapid.IntRange(0, 2).Draw(rt, "other") {
		case 0: // the same
		case 1:
			if strings.Contains(one, "(d, ") || strings.Contains(one, "(o, ") {
				break // the other name may be hidden
			}
			other = strings.NewReplacer("<d>", "<o>", "<o>", "<d>").Replace(one)
		default:
			other = part(rt, rapid.IntRange(0, 2).Draw(rt, "depth of other"))
		}
		expression, err := e.Compile(rt.Context(), fmt.Sprintf("devices.all(d, devices.all(o, dyn(%s) < dyn(%s)))", source(one), source(other)))
		require.NoError(rt, err)
		shapes := shapesIn(expression)
		require.Len(rt, shapes, 2)
		switch {
		case numbered(one) != numbered(other):
			different++
			require.NotEqual(rt, shapes[0], shapes[1], "%s\n%s", one, other)
		case strings.Contains(one, "{"):
			// Two maps never have the same shape.
		default:
			same++
			require.Equal(rt, shapes[0], shapes[1], "%s\n%s", one, other)
		}
	})
	require.Positive(t, same)
	require.Positive(t, different)
}
