// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/cel/tree"
)

// scoresReceiver is a CEL validator. It rejects calls of scores() and sets() on an expression that surely is not the cluster.
// If the expression may be the cluster, such as the variable of a macro, the evaluation checks it.
type scoresReceiver struct{}

// Name returns the name of the validator.
func (scoresReceiver) Name() string { return "celset.validator.scores_receiver" }

// Validate reports each wrong receiver at its position.
func (scoresReceiver) Validate(_ *celgo.Env, _ celgo.ValidatorConfig, a *ast.AST, issues *celgo.Issues) {
	for _, call := range scoresCalls(a) {
		if receiver := call.AsCall().Target(); !maybeCluster(receiver, a) {
			issues.ReportErrorAtID(receiver.ID(), wrongReceiver, call.AsCall().FunctionName())
		}
	}
}

func scoresCalls(a *ast.AST) []ast.NavigableExpr {
	return ast.MatchDescendants(ast.NavigateAST(a), func(e ast.NavigableExpr) bool {
		return tree.IsCall(e, scoresFunction, setsFunction) && e.AsCall().IsMemberFunction()
	})
}

// maybeCluster reports whether an expression may evaluate to the cluster.
func maybeCluster(e ast.Expr, a *ast.AST) bool {
	switch e.Kind() {
	case ast.LiteralKind, ast.ListKind, ast.MapKind, ast.StructKind:
		return false
	case ast.SelectKind:
		return !partOfCluster(e.AsSelect().Operand(), a)
	default:
		return true
	}
}

// partOfCluster reports whether an expression is the variable of the cluster or reads a field of it. A macro may declare a
// variable with the same name, which is not the cluster.
func partOfCluster(e ast.Expr, a *ast.AST) bool {
	if e.Kind() == ast.SelectKind {
		return partOfCluster(e.AsSelect().Operand(), a)
	}
	return tree.IsIdent(e, clusterVariable) && !declaresCluster(a)
}

// declaresCluster reports whether a macro declares a variable with the name of the cluster.
func declaresCluster(a *ast.AST) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(a), func(e ast.NavigableExpr) bool {
		if e.Kind() != ast.ComprehensionKind {
			return false
		}
		c := e.AsComprehension()
		return c.AccuVar() == clusterVariable || slices.Contains(tree.IterVars(c), clusterVariable)
	})) > 0
}

// ScoreNames are the names of the AddOnPlacementScores that a selector reads. If a score with such a name changes, a verdict
// may change.
type ScoreNames struct {
	// Names are the names that expressions have as literals.
	Names sets.Set[string]
	// Computed is true if an expression computes a name, so that the selector may read any score.
	Computed bool
}

// Has reports whether the selector may read the AddOnPlacementScore with the name.
func (n ScoreNames) Has(name string) bool { return n.Computed || n.Names.Has(name) }

func (n *ScoreNames) add(a *ast.AST) {
	for _, call := range scoresCalls(a) {
		if tree.IsCall(call, setsFunction) {
			n.Names.Insert(setscores.Name)
		} else if name, ok := tree.Literal[types.String](call.AsCall().Args()[0]); ok {
			n.Names.Insert(string(name))
		} else {
			n.Computed = true
		}
	}
}
