// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/cel/tree"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestRules checks the transcripts in testdata/rules, one for each family of rules. A transcript lists, for each expression,
// the applied rules with their results. It also lists the bounds and domains of partial sets, for sets of two of four devices
// of [line].
func TestRules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "rules", "*.txt"))
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			transcript.Run(t, file, func(t *testing.T, expression string) string { return applied(t, expression) })
		})
	}
}

func applied(t *testing.T, expression string) string {
	t.Helper()
	var lines []string
	compiled, err := environment(t).Compile(t.Context(), expression)
	require.NoError(t, err)
	analysis := bound.AnalyzeTraced(compiled, 2, func(rule string, _, after ast.Expr) {
		lines = append(lines, rule+": "+written(after))
	})
	checked := soundOf(formula{expression, compiled}, 2, line(4))
	checked.tables = analysis.Tabulate(checked.all)
	bounds := checked.bounds(t)
	for _, chosen := range [][]int{nil, {0}, {0, 1}, {0, 2}} {
		p := bound.Partial{Chosen: of(4, chosen...), Domain: of(4), Forced: of(4), Left: 2 - len(chosen)}
		for i := range 4 {
			if p.Left > 0 && !slices.Contains(chosen, i) {
				p.Domain.Add(i)
			}
		}
		// Transcripts may be edited by hand, so check the bounds against all completions, too.
		checked.check(t, bounds, p, bound.Thorough)
		said := bounds.Bound(p).String()
		if p.Left > 0 && bounds.Infeasible(p, bound.Thorough) {
			said += ", infeasible"
		} else if p.Left > 0 {
			said += ", domain " + members(p.Domain) + ", forced " + members(p.Forced)
		}
		lines = append(lines, fmt.Sprintf("%s: %s", members(of(4, chosen...)), said))
	}
	return strings.Join(lines, "\n")
}

func members(s bitset.Set) string {
	return strings.ReplaceAll(fmt.Sprint(slices.Collect(s.All())), " ", ",")
}

// written returns the text of an expression, with CEL macros instead of the loops that macros expand to.
func written(expr ast.Expr) string {
	switch expr.Kind() {
	case ast.CallKind:
		return writtenCall(expr.AsCall())
	case ast.ComprehensionKind:
		return writtenLoop(expr.AsComprehension())
	case ast.ListKind:
		return "[" + writtenAll(expr.AsList().Elements()) + "]"
	case ast.SelectKind:
		return written(expr.AsSelect().Operand()) + "." + expr.AsSelect().FieldName()
	default:
		text, err := parser.Unparse(expr, ast.NewSourceInfo(nil))
		if err != nil {
			return err.Error()
		}
		return text
	}
}

func writtenAll(exprs []ast.Expr) string {
	texts := make([]string, len(exprs))
	for i, e := range exprs {
		texts[i] = written(e)
	}
	return strings.Join(texts, ", ")
}

func writtenCall(call ast.CallExpr) string {
	args := call.Args()
	operator, isOperator := operators.FindReverse(call.FunctionName())
	switch {
	case call.FunctionName() == operators.Conditional:
		return fmt.Sprintf("(%s ? %s : %s)", written(args[0]), written(args[1]), written(args[2]))
	case call.FunctionName() == operators.Index:
		return fmt.Sprintf("%s[%s]", written(args[0]), written(args[1]))
	case isOperator && operator != "" && len(args) == 2:
		return fmt.Sprintf("(%s %s %s)", written(args[0]), operator, written(args[1]))
	case isOperator && operator != "" && len(args) == 1:
		return operator + written(args[0])
	case call.IsMemberFunction():
		return fmt.Sprintf("%s.%s(%s)", written(call.Target()), call.FunctionName(), writtenAll(args))
	default:
		return fmt.Sprintf("%s(%s)", call.FunctionName(), writtenAll(args))
	}
}

func writtenLoop(c ast.ComprehensionExpr) string {
	names := map[tree.Quantifier]string{tree.All: "all", tree.Exists: "exists", tree.ExistsOne: "exists_one"}
	if is, holds := tree.QuantifierOf(c); is != tree.NoQuantifier {
		return fmt.Sprintf("%s.%s(%s, %s)", written(c.IterRange()), names[is], tree.ElementVar(c), written(holds))
	}
	keeps, element, ok := tree.CollectionOf(c)
	switch {
	case !ok:
		return "(a loop over " + written(c.IterRange()) + ")"
	case keeps == nil:
		return fmt.Sprintf("%s.map(%s, %s)", written(c.IterRange()), tree.ElementVar(c), written(element))
	case tree.IsIdent(element, tree.ElementVar(c)):
		return fmt.Sprintf("%s.filter(%s, %s)", written(c.IterRange()), tree.ElementVar(c), written(keeps))
	default:
		return fmt.Sprintf("%s.map(%s, %s, %s)", written(c.IterRange()), tree.ElementVar(c), written(keeps), written(element))
	}
}
