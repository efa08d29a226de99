// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Config specifies how the expressions of an environment are planned and charged.
type Config struct {
	// Estimator provides the costs of functions. nil means CEL's costs. It may also be a [LoadEstimator].
	Estimator interpreter.ActualCostEstimator
	// OperatorsAsCEL means that the Estimator has no costs of operators except "==", so CEL's costs apply.
	OperatorsAsCEL bool
	// FreePresenceTests makes has() free, as in Kubernetes.
	FreePresenceTests bool
	// ChargesTexts is set for environments with the strings library of version 5 or later, which has its own charges.
	ChargesTexts bool
	// ReadsMakeLists is set if each read of a list from the input makes a new list.
	ReadsMakeLists bool
}

// LoadEstimator provides the loads of functions outside of CEL's and Kubernetes' libraries.
type LoadEstimator interface {
	// CallLoad returns the load of a call, or false for an unknown function.
	CallLoad(function string, args []ref.Val) (Load, bool)
}

// Planner makes programs from the checked expressions of one environment. It is safe for concurrent use.
type Planner struct {
	config      Config
	loads       LoadEstimator
	dispatcher  interpreter.Dispatcher
	interpreter interpreter.Interpreter
}

// NewPlanner returns a Planner for the functions of the environment.
func NewPlanner(env *cel.Env, config Config) (*Planner, error) {
	dispatcher := interpreter.NewDispatcher()
	for _, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("bind function %s: %w", function.Name(), err)
		}
		if err := dispatcher.Add(bindings...); err != nil {
			return nil, fmt.Errorf("bind function %s: %w", function.Name(), err)
		}
	}
	adapter, provider := env.CELTypeAdapter(), env.CELTypeProvider()
	attributes := interpreter.NewAttributeFactory(env.Container, adapter, provider)
	loads, _ := config.Estimator.(LoadEstimator)
	return &Planner{
		config:      config,
		loads:       loads,
		dispatcher:  dispatcher,
		interpreter: interpreter.NewInterpreter(dispatcher, env.Container, provider, adapter, attributes),
	}, nil
}

// Plan returns the program of an expression. With optimize, it computes constants in advance: lists of constants, conversions
// of constants, memberships in lists of constants, and regular expressions. If a constant can't be computed, Plan returns an
// error.
func (p *Planner) Plan(checked *ast.AST, optimize bool) (*Program, error) {
	b := &builder{Planner: p, optimize: optimize, presence: map[int64]bool{}, conditionals: map[int64]bool{}}
	b.recognize(checked.Expr())
	options := []interpreter.PlannerOption{}
	if optimize {
		options = append(options, interpreter.Optimize())
	}
	options = append(options, interpreter.CustomDecoratorV2(b.decorate))
	root, err := p.interpreter.NewInterpretable(checked, options...)
	if err != nil {
		return nil, err
	}
	return &Program{root: root}, nil
}

// builder plans one expression.
type builder struct {
	*Planner
	optimize bool
	// presence and conditionals have the IDs of presence tests and conditionals. They are recorded from the syntax tree,
	// because the interpreter plans both as plain attributes.
	presence, conditionals map[int64]bool
}

func (b *builder) recognize(expr ast.Expr) {
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly():
			b.presence[e.ID()] = true
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional:
			b.conditionals[e.ID()] = true
		}
	}))
}

func (b *builder) decorate(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch step := step.(type) {
	case *attribute, *call:
		return step, nil
	case interpreter.InterpretableConst:
		return step, nil
	case interpreter.InterpretableAttribute:
		return b.attribute(step), nil
	case interpreter.InterpretableCall:
		return b.call(step)
	case interpreter.InterpretableConstructor:
		return &constructor{step}, nil
	default:
		return step, nil
	}
}

// Program is a planned expression. It is safe for concurrent use.
type Program struct {
	root interpreter.InterpretableV2
}

// Eval evaluates the expression. It returns the expense even if the evaluation fails. The error comes from cel-go, or is a
// [*LimitError] or an [*InterruptedError]. With an error from cel-go, value has the error's position.
func (p *Program) Eval(ctx context.Context, input interpreter.Activation, limits Limits) (value ref.Val, expense Expense, err error) {
	s := scopes.Get().(*scope)
	s.Activation, s.account = input, account{ctx: ctx, limits: limits, values: s.initialValues[:0]}
	frame, err := interpreter.NewExecutionFrame(s)
	if err != nil {
		return nil, Expense{}, err
	}
	defer func() {
		if s.account.hasPermit {
			endTurn()
		}
		expense = s.account.expense()
		switch failure := recover().(type) {
		case nil:
			frame.Close()
			*s = scope{}
			scopes.Put(s)
		case *LimitError:
			value, err = nil, failure
		case *InterruptedError:
			value, err = nil, failure
		default:
			value, err = nil, fmt.Errorf("internal error: %v", failure)
		}
	}()
	value = p.root.Exec(frame)
	if failure, failed := value.(*types.Err); failed {
		err = failure
	}
	return value, Expense{}, err
}
