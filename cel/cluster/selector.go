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

// Selector selects the clusters that satisfy a label selector, a claim selector and all CEL expressions of a list. It is safe for
// concurrent use.
type Selector struct {
	// labels and claims are nil if the selector does not limit them.
	labels      labels.Selector
	claims      labels.Selector
	expressions []expression
	scores      ScoreNames
	// labelsPath and claimsPath are the paths of the label and the claim selector. They are nil if the selector comes from no
	// object.
	labelsPath *field.Path
	claimsPath *field.Path
}

type expression struct {
	path    *field.Path
	program *cel.Program
}

// Error is a mistake in a part of a selector, or the failed evaluation of an expression.
type Error struct {
	// Path is the path of the part with the error.
	Path *field.Path
	// Err is the mistake or the failure. For expressions it is a [*cel.Error] or wraps one.
	Err error
}

// Error returns path and message. It may have several lines.
func (e *Error) Error() string { return e.Path.String() + ": " + e.Err.Error() }

// Unwrap returns the error without the path.
func (e *Error) Unwrap() error { return e.Err }

// Verdict is the result of matching one cluster.
type Verdict struct {
	// Matches is false if there is an error.
	Matches bool
	// Cost is the cost of all evaluations in CEL cost units. It is zero if no CEL expression was evaluated.
	Cost uint64
	// Unmatched is the path of the first part of the selector that does not match. It is nil if all parts match, if an
	// evaluation failed, or if the selector comes from no object.
	Unmatched *field.Path
	// Timed is true if an expression has read now(). Then the verdict or failure depends on the Clock of the [Hub].
	Timed bool
}

// ForLabels returns a selector with only a label selector, which may also use the operators Gt and Lt.
func ForLabels(selector labels.Selector) *Selector {
	return &Selector{labels: unlessEmpty(selector)}
}

// Compile returns the selector of a predicate. path is the path of the predicate in its object, or nil. The error joins one
// [*Error] for each part with a mistake. If the context has ended, the error is the error of the context instead.
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

// Programs returns the compiled expressions.
func (s *Selector) Programs() []*cel.Program {
	programs := make([]*cel.Program, len(s.expressions))
	for i, e := range s.expressions {
		programs[i] = e.program
	}
	return programs
}

// ScoreNames returns the names of the AddOnPlacementScores that the selector reads.
func (s *Selector) ScoreNames() ScoreNames { return s.scores }

// Match returns the verdict for one cluster. If an evaluation fails, the error is an [*Error] with the expression and the
// position. The only other error is for the zero Cluster.
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

// failure is the error of an evaluation. Its text is formatted only if it is shown, because an expression may fail on each
// cluster, and only some failures are shown.
type failure struct {
	cluster string
	err     error
}

func (f *failure) Error() string { return "cluster " + f.cluster + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// evaluate evaluates the expressions in order and stops at the first expression that is not true.
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
