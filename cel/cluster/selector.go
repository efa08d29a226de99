// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
)

// Selector tells which clusters satisfy a label selector, a claim selector and a
// list of CEL expressions, all of them. It is safe for concurrent use.
type Selector struct {
	// labels and claims are nil if they match everything.
	labels      labels.Selector
	claims      labels.Selector
	expressions []expression
	scores      ScoreNames
	// labelsPath and claimsPath lead to these parts, nil for a selector that does not
	// come from an object.
	labelsPath *field.Path
	claimsPath *field.Path
}

type expression struct {
	path    *field.Path
	program *cel.Program
}

// Error says which part of a selector is wrong, or failed.
type Error struct {
	// Path leads to that part.
	Path *field.Path
	// Err says what is wrong with it; for expressions it is a [*cel.Error].
	Err error
}

// Error returns path and message. It may have several lines.
func (e *Error) Error() string { return e.Path.String() + ": " + e.Err.Error() }

// Unwrap returns the error without path.
func (e *Error) Unwrap() error { return e.Err }

// Verdict is the answer for one cluster.
type Verdict struct {
	// Matches is false if there is an error.
	Matches bool
	// Cost is that of all evaluations, in CEL cost units; zero without CEL.
	Cost uint64
	// Unmatched leads to the first part that does not match; nil if all do, if the
	// evaluation failed and if the selector does not come from an object.
	Unmatched *field.Path
	// Timed reports that an expression has read now(): the answer, or the failure, is that of
	// the Clock of the [Hub].
	Timed bool
}

// ForLabels returns a selector of clusters by labels only. It takes the operators
// Gt and Lt, too.
func ForLabels(selector labels.Selector) *Selector {
	return &Selector{labels: unlessEmpty(selector)}
}

// Compile returns the selector of a predicate. path leads to it in the object
// that has it, nil if there is none. The error joins an [*Error] for each part
// that is wrong, or is none of that type if the context ended.
func (e *Environment) Compile(ctx context.Context, from clusterv1beta1.ClusterSelector, path *field.Path) (*Selector, error) {
	result := &Selector{
		scores:     ScoreNames{Names: sets.New[string]()},
		labelsPath: path.Child("labelSelector"),
		claimsPath: path.Child("claimSelector"),
	}
	var failures []error
	compiled := func(part metav1.LabelSelector, path *field.Path) labels.Selector {
		selector, err := metav1.LabelSelectorAsSelector(&part)
		if err != nil {
			failures = append(failures, &Error{path, err})
		}
		return unlessEmpty(selector)
	}
	result.labels = compiled(from.LabelSelector, result.labelsPath)
	result.claims = compiled(metav1.LabelSelector{MatchExpressions: from.ClaimSelector.MatchExpressions}, result.claimsPath)
	for i, text := range from.CelSelector.CelExpressions {
		at := path.Child("celSelector", "celExpressions").Index(i)
		program, err := e.core.Compile(ctx, text)
		if _, wrong := errors.AsType[*cel.Error](err); err != nil && !wrong {
			return nil, err
		}
		if err != nil {
			failures = append(failures, &Error{at, err})
			continue
		}
		result.expressions = append(result.expressions, expression{at, program})
		result.scores.add(program.AST())
	}
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	return result, nil
}

func unlessEmpty(selector labels.Selector) labels.Selector {
	if selector == nil || selector.Empty() {
		return nil
	}
	return selector
}

// Programs are the compiled expressions.
func (s *Selector) Programs() []*cel.Program {
	programs := make([]*cel.Program, len(s.expressions))
	for i, e := range s.expressions {
		programs[i] = e.program
	}
	return programs
}

// ScoreNames tells which AddOnPlacementScores the selector reads.
func (s *Selector) ScoreNames() ScoreNames { return s.scores }

// Match answers for one cluster. A failed evaluation is an [*Error] that says
// which expression failed, and where; the only other error is that there is no
// cluster.
func (s *Selector) Match(ctx context.Context, cluster Cluster, hub Hub) (Verdict, error) {
	switch {
	case cluster.object == nil:
		return Verdict{}, errors.New("match a selector: there is no cluster")
	case s.labels != nil && !s.labels.Matches(cluster.labels):
		return Verdict{Unmatched: s.labelsPath}, nil
	case s.claims != nil && !s.claims.Matches(cluster.claims):
		return Verdict{Unmatched: s.claimsPath}, nil
	case len(s.expressions) == 0:
		return Verdict{Matches: true}, nil
	default:
		return s.evaluate(ctx, newInput(cluster, hub))
	}
}

// failure is what an evaluation ended with. Its text is made when somebody asks for it: an
// expression that fails may do so on each cluster, and only some are shown.
type failure struct {
	cluster string
	err     error
}

func (f *failure) Error() string { return "cluster " + f.cluster + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// evaluate stops at the first expression that is not true.
func (s *Selector) evaluate(ctx context.Context, input *input) (Verdict, error) {
	budget := cel.NewBudget(ClusterCostLimit)
	for i := range s.expressions {
		matches, err := s.expressions[i].program.Evaluate(ctx, input, budget)
		if err != nil {
			return Verdict{Cost: budget.Spent(), Timed: input.timed()}, &Error{s.expressions[i].path, &failure{input.name, err}}
		}
		if !matches {
			return Verdict{Cost: budget.Spent(), Unmatched: s.expressions[i].path, Timed: input.timed()}, nil
		}
	}
	return Verdict{Matches: true, Cost: budget.Spent(), Timed: input.timed()}, nil
}
