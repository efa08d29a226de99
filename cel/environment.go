// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/decls"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/celset/celset/cel/meter"
)

const (
	// MaxExpressionLength is the maximum length of an expression in bytes, as for device selectors in Kubernetes.
	MaxExpressionLength = resourceapi.CELSelectorExpressionMaxLength

	// DefaultCostLimit is the maximum runtime cost of one evaluation in CEL cost units, as for device selectors in Kubernetes.
	DefaultCostLimit uint64 = resourceapi.CELSelectorExpressionMaxCost

	// DefaultMemoryLimit is the maximum size, in bytes, of the texts, lists and maps that the functions in one evaluation
	// create. It is small, because a scheduler evaluates on sixteen nodes at a time.
	DefaultMemoryLimit uint64 = 2 << 20

	// DefaultCacheBytes is the maximum memory of the compilations that an Environment caches. A usual expression takes 30 to 70 KiB,
	// an expression of [MaxExpressionLength] up to some MiB.
	DefaultCacheBytes int64 = 32 << 20
)

// Config describes an [Environment].
type Config struct {
	// Name identifies the environment in metrics, for example "devices".
	Name string
	// Base is the environment to which Types and Options are added. nil means the CEL environment of the pinned Kubernetes version.
	// Another base provides the functions and checks of another project.
	Base *cel.Env
	// Types are the object types that the variables use. They are used only if Base is nil.
	Types []*apiservercel.DeclType
	// Options declare the variables and functions of this kind of input.
	Options []cel.EnvOption
	// Element describes the elements that variables are defined for. If its Name is empty, expressions can't have variables.
	Element Element
	// OptimizeConstants evaluates constants when an expression is compiled. It matters only if Base is set, because Kubernetes'
	// environment always does this. An expression compiles even if a constant can't be evaluated, such as a malformed regular
	// expression. Then the evaluation fails where it needs the constant.
	OptimizeConstants bool
	// Meter configures how evaluations are charged if Base is set. Kubernetes' environment is charged as in Kubernetes.
	Meter meter.Config
	// MaxLength is the maximum length of an expression in bytes. Zero means [MaxExpressionLength]. Expressions longer than
	// MaxExpressionLength are not cached.
	MaxLength int
	// CostLimit limits the cost of one evaluation. Zero means [DefaultCostLimit].
	CostLimit uint64
	// MemoryLimit limits the bytes that the functions in one evaluation create. Zero means [DefaultMemoryLimit].
	MemoryLimit uint64
	// Costs provides the costs of functions and the sizes of the inputs. nil means the costs of Base.
	Costs CostEstimator
	// Advice is added to errors about costs.
	Advice Advice
	// NamesNearest adds the most similar variable or function to errors about unknown names.
	NamesNearest bool
	// CacheBytes is the maximum memory of cached compilations. Zero means [DefaultCacheBytes].
	CacheBytes int64
	// Observer receives compilations and evaluations. A [Timer] also receives the durations of evaluations. Observer may be nil.
	Observer Observer
}

// Environment compiles the expressions over one kind of input. It is safe for
// concurrent use.
type Environment struct {
	name      string
	env       *cel.Env
	functions map[string]*decls.FunctionDecl
	checks
	planner   *meter.Planner
	constants constants
	limits    meter.Limits
	cache     *compilations
	observer  Observer
	// timer is the observer if it implements Timer, otherwise nil.
	timer Timer
}

// checks holds the fields of [Config] that decide whether an expression compiles, and which text an error has.
type checks struct {
	element      Element
	maxLength    int
	costs        CostEstimator
	advice       Advice
	namesNearest bool
}

// NewEnvironment returns an Environment that extends the base of the configuration.
func NewEnvironment(config Config) (*Environment, error) {
	env, err := config.extend()
	if err != nil {
		return nil, err
	}
	config.setDefaults()
	planner, err := meter.NewPlanner(env, config.Meter)
	if err != nil {
		return nil, fmt.Errorf("extend the CEL environment for %s: %w", config.Name, err)
	}
	timer, _ := config.Observer.(Timer)
	return &Environment{
		name:      config.Name,
		env:       env,
		functions: env.Functions(),
		checks: checks{
			element: config.Element, maxLength: config.MaxLength, costs: config.Costs, advice: config.Advice, namesNearest: config.NamesNearest,
		},
		planner:   planner,
		constants: config.constants(),
		limits:    meter.Limits{Cost: config.CostLimit, Bytes: config.MemoryLimit},
		cache:     newCompilations(config.CacheBytes),
		observer:  config.Observer,
		timer:     timer,
	}, nil
}

// constants says when constants are evaluated.
type constants int

const (
	// inPlace evaluates a constant when an evaluation needs it.
	inPlace constants = iota
	// lateConstants evaluates constants when the expression is compiled. If that fails, it falls back to inPlace.
	lateConstants
	// earlyConstants evaluates constants when the expression is compiled. If that fails, the expression does not compile.
	earlyConstants
)

func (c *Config) constants() constants {
	switch {
	case c.Base == nil:
		return earlyConstants
	case c.OptimizeConstants:
		return lateConstants
	default:
		return inPlace
	}
}

// extend adds Types and Options to the base. In Kubernetes' environment it enables every library of the version, as Kubernetes
// does for stored expressions, because only admission can distinguish a new expression from a stored one.
func (c *Config) extend() (*cel.Env, error) {
	options := append(slices.Clone(c.Options), optionalMacros())
	if c.Element.Name != "" {
		options = append(options, cel.Variable(boundElement, c.Element.Type))
	}
	if c.Base != nil {
		env, err := c.Base.Extend(options...)
		if err != nil {
			return nil, fmt.Errorf("extend the CEL environment for %s: %w", c.Name, err)
		}
		return env, nil
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        options,
			DeclTypes:         c.Types,
		})
	if err != nil {
		return nil, fmt.Errorf("extend the Kubernetes CEL environment for %s: %w", c.Name, err)
	}
	return set.StoredExpressionsEnv(), nil
}

func (c *Config) setDefaults() {
	if c.MaxLength <= 0 {
		c.MaxLength = MaxExpressionLength
	}
	if c.CostLimit == 0 {
		c.CostLimit = DefaultCostLimit
	}
	if c.MemoryLimit == 0 {
		c.MemoryLimit = DefaultMemoryLimit
	}
	switch {
	case c.Base == nil && c.Costs == nil:
		c.Meter = meter.Config{Estimator: &library.CostEstimator{}, OperatorsAsCEL: true, FreePresenceTests: true}
	case c.Base == nil:
		c.Meter = meter.Config{Estimator: c.Costs, FreePresenceTests: true}
	case c.Costs != nil:
		c.Meter.Estimator = c.Costs
	}
	if c.Advice == (Advice{}) {
		c.Advice = adviceOnDevices
	}
	if c.CacheBytes <= 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Observer == nil {
		c.Observer = unobserved{}
	}
}

// Functions returns the declarations of all functions and operators, by name.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.functions }

// Compile returns the program of an expression that evaluates to bool. The error is an [*Error] with the position of the
// mistake, or the error of the context. Tenants take turns ([fairness.WithTenant]). If the context has ended, Compile compiles
// nothing.
func (e *Environment) Compile(ctx context.Context, expression string, variables ...Variable) (*Program, error) {
	return e.compileOnce(ctx, resultBool, expression, variables)
}

// CompileInt is like Compile for an expression that evaluates to int.
func (e *Environment) CompileInt(ctx context.Context, expression string, variables ...Variable) (*Program, error) {
	return e.compileOnce(ctx, resultInt, expression, variables)
}

// CompileAny is like Compile for an expression of any type.
func (e *Environment) CompileAny(ctx context.Context, expression string, variables ...Variable) (*Program, error) {
	return e.compileOnce(ctx, resultAny, expression, variables)
}

func (e *Environment) compileOnce(ctx context.Context, to resultType, expression string, variables []Variable) (*Program, error) {
	result, hit, err := e.cache.get(ctx, newSource(to, expression, variables), func() (*Program, error) { return e.compile(to, expression, variables) })
	if err != nil {
		return nil, fmt.Errorf("wait to compile an expression: %w", err)
	}
	e.observer.ObserveCompilation(e.name, hit, result.err)
	return result.program, result.err
}

func (e *Environment) compile(to resultType, expression string, variables []Variable) (program *Program, err error) {
	length := lengthOf(expression, variables)
	if length > e.maxLength {
		return nil, &Error{
			Reason:  ReasonTooLong,
			Message: fmt.Sprintf("the expression has %d bytes%s, the limit is %d: split it into several", length, withVariables(variables), e.maxLength),
		}
	}
	if err := e.checkVariables(variables); err != nil {
		return nil, err
	}
	defer func() {
		// CEL's validators panic on some expressions, for example [?dyn(1)].
		if failure := recover(); failure != nil {
			program, err = nil, &Error{
				Reason:     ReasonInvalid,
				Expression: expression,
				Message:    fmt.Sprintf("CEL can't check the expression, write it another way: %v", failure),
			}
		}
	}()
	ast, err := e.check(to, expression, variables)
	if err != nil {
		return nil, err
	}
	plan, err := e.plan(ast)
	if err != nil {
		return nil, &Error{Reason: ReasonInvalid, Expression: expression, Message: err.Error(), err: err}
	}
	return &Program{environment: e, result: to, expression: expression, ast: ast, program: plan}, nil
}

// check parses the expression and its variables, and checks their sizes and types.
func (e *Environment) check(to resultType, expression string, variables []Variable) (*cel.Ast, error) {
	parsed, failure := e.parse(expression)
	if failure != nil {
		return nil, failure
	}
	if len(variables) > 0 {
		written, err := e.write(variables)
		if err != nil {
			return nil, err
		}
		if failure := written.substitute(expression, parsed, false); failure != nil {
			return nil, failure
		}
	}
	if failure := e.checkTree(parsed); failure != nil {
		return nil, failure
	}
	ast, issues := e.env.Check(parsed)
	if issues.Err() != nil {
		return nil, e.mistyped(expression, parsed, issues)
	}
	if !to.maybe(ast.OutputType()) {
		return nil, positioned(ReasonType, expression, common.NewLocation(1, 0),
			fmt.Sprintf("the expression must return %s, but returns %s", to, ast.OutputType()))
	}
	return ast, nil
}

// parse parses a text, or rejects it if it is too large.
func (e *Environment) parse(text string) (*cel.Ast, *Error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Reason: ReasonInvalid, Message: "the expression is not valid UTF-8"}
	}
	if err := checkText(text); err != nil {
		return nil, err
	}
	parsed, issues := e.env.ParseSource(bareSource{common.NewTextSource(text)})
	if issues.Err() != nil {
		return nil, e.compileError(text, issues)
	}
	return parsed, nil
}

// plan returns the program of a checked expression.
func (e *Environment) plan(checked *cel.Ast) (*meter.Program, error) {
	if e.constants == lateConstants {
		if program, err := e.planner.Plan(checked.NativeRep(), true); err == nil {
			return program, nil
		}
	}
	return e.planner.Plan(checked.NativeRep(), e.constants == earlyConstants)
}

// resultType is the required type of the result.
type resultType string

const (
	resultBool resultType = "bool"
	resultInt  resultType = "int"
	resultAny  resultType = "any value"
)

// maybe reports whether a result with the static type t may have the required type at run time. Types such as dyn count, as in
// Kubernetes' device selectors.
func (r resultType) maybe(t *cel.Type) bool {
	return r == resultAny || t.String() == string(r) || t.IsExactType(cel.DynType) || t.IsExactType(cel.AnyType)
}
