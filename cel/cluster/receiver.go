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

// scoresReceiver refuses scores() and sets() on anything that can't be the cluster. What
// can be it or not, such as the variable of a macro, is left to the evaluation.
type scoresReceiver struct{}

// Name identifies the validator.
func (scoresReceiver) Name() string { return "celset.validator.scores_receiver" }

// Validate reports each wrong receiver where it stands.
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

// partOfCluster reports whether an expression is the cluster or reads a field of
// it. A variable of a macro that has its name may be anything.
func partOfCluster(e ast.Expr, a *ast.AST) bool {
	if e.Kind() == ast.SelectKind {
		return partOfCluster(e.AsSelect().Operand(), a)
	}
	return tree.IsIdent(e, clusterVariable) && !declaresCluster(a)
}

// declaresCluster reports whether some macro has a variable with the name of the
// cluster.
func declaresCluster(a *ast.AST) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(a), func(e ast.NavigableExpr) bool {
		if e.Kind() != ast.ComprehensionKind {
			return false
		}
		c := e.AsComprehension()
		return c.AccuVar() == clusterVariable || slices.Contains(tree.IterVars(c), clusterVariable)
	})) > 0
}

// ScoreNames are the AddOnPlacementScores that a selector reads: when one of them
// changes, its answer may change.
type ScoreNames struct {
	// Names are known without evaluating anything.
	Names sets.Set[string]
	// Computed tells that other names are computed while a cluster is matched.
	Computed bool
}

// Has reports whether the selector may read the AddOnPlacementScore of that name.
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
