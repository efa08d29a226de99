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
	// MaxExpressionLength is the longest expression that is compiled, in bytes.
	// It is the limit that Kubernetes has for device selectors.
	MaxExpressionLength = resourceapi.CELSelectorExpressionMaxLength

	// DefaultCostLimit is the runtime cost, in CEL cost units, that one evaluation
	// may reach. It is the limit that Kubernetes has for device selectors.
	DefaultCostLimit uint64 = resourceapi.CELSelectorExpressionMaxCost

	// DefaultMemoryLimit is how many bytes of texts, lists and maps the functions of one
	// evaluation may make. A scheduler evaluates on sixteen nodes at a time.
	DefaultMemoryLimit uint64 = 2 << 20

	// DefaultCacheBytes is what the compilations that an Environment remembers may
	// take. A usual expression takes 30 to 70 KiB, one of [MaxExpressionLength] up to
	// some MiB.
	DefaultCacheBytes int64 = 32 << 20
)

// Config describes an [Environment].
type Config struct {
	// Name tells environments apart in metrics, for example "devices".
	Name string
	// Base is what Types and Options are added to; nil means the CEL environment of
	// the pinned Kubernetes version. A base of one's own keeps to the functions and
	// checks that another project has.
	Base *cel.Env
	// Types are the object types that the variables use. Only the environment of
	// Kubernetes takes them.
	Types []*apiservercel.DeclType
	// Options declare the variables and functions of this kind of input.
	Options []cel.EnvOption
	// Element is what variables are of; without a name there are none.
	Element Element
	// OptimizeConstants evaluates constants when an expression is compiled, where Base is
	// set: the environment of Kubernetes does so always. An expression with a constant
	// that can't be evaluated, such as a malformed regular expression, compiles all the
	// same, and fails where that constant is needed.
	OptimizeConstants bool
	// Meter says how evaluations are charged where Base is set. The environment of
	// Kubernetes is charged as Kubernetes does.
	Meter meter.Config
	// MaxLength is the longest expression that is compiled, in bytes; zero means
	// [MaxExpressionLength]. Longer ones than that are never remembered.
	MaxLength int
	// CostLimit bounds one evaluation; zero means [DefaultCostLimit].
	CostLimit uint64
	// MemoryLimit bounds what one evaluation makes, in bytes; zero means
	// [DefaultMemoryLimit].
	MemoryLimit uint64
	// Costs knows what functions cost and how large the inputs are; nil means what
	// Base says.
	Costs CostEstimator
	// Advice is added to errors about costs.
	Advice Advice
	// NamesNearest adds to mistakes about names the nearest variable or function.
	NamesNearest bool
	// CacheBytes is what the compilations that are remembered may take, in bytes of
	// memory; zero means [DefaultCacheBytes].
	CacheBytes int64
	// Observer is told about compilations and evaluations, a [Timer] also about the
	// time that the latter take; nil means nobody is.
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
	// timer is the observer if that implements Timer, else nil.
	timer Timer
}

// checks holds the fields of [Config] that decide whether an expression compiles, and what the error says.
type checks struct {
	element      Element
	maxLength    int
	costs        CostEstimator
	advice       Advice
	namesNearest bool
}

// NewEnvironment extends the base of the configuration.
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
	// inPlace: where they are needed.
	inPlace constants = iota
	// lateConstants: when the expression is compiled, if nothing is wrong with them.
	lateConstants
	// earlyConstants: when the expression is compiled.
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

// extend uses what Kubernetes uses for stored expressions, that is every library
// of its version: whether an expression is new is known to admission only.
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

// Compile returns the program of an expression that evaluates to bool. The error is an [*Error]
// with the position of the mistake, or what ended the context: tenants take turns
// ([fairness.WithTenant]), and nothing is compiled for a caller that does not wait any more.
func (e *Environment) Compile(ctx context.Context, expression string, variables ...Variable) (*Program, error) {
	return e.compileOnce(ctx, resultBool, expression, variables)
}

// CompileInt returns the program of an expression that evaluates to int. It is otherwise as
// Compile.
func (e *Environment) CompileInt(ctx context.Context, expression string, variables ...Variable) (*Program, error) {
	return e.compileOnce(ctx, resultInt, expression, variables)
}

// CompileAny returns the program of an expression of any type. It is otherwise as Compile.
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
			Message: fmt.Sprintf("the expression has %d bytes%s, the limit is %d", length, withVariables(variables), e.maxLength),
		}
	}
	if err := e.checkVariables(variables); err != nil {
		return nil, err
	}
	defer func() {
		// CEL's validators panic over some expressions, [?dyn(1)] for one.
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

// check parses the texts, and checks sizes, types and what the expression may cost.
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
		if failure := written.writeOut(expression, parsed, false); failure != nil {
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
			fmt.Sprintf("the expression must return %s, it returns %s", to, ast.OutputType()))
	}
	return ast, nil
}

// parse reads a text that is not too large.
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

// resultType is what an expression has to evaluate to.
type resultType string

const (
	resultBool resultType = "bool"
	resultInt  resultType = "int"
	resultAny  resultType = "any value"
)

// maybe accepts what may still turn out to be of that type when it is evaluated,
// as Kubernetes does for device selectors.
func (r resultType) maybe(t *cel.Type) bool {
	return r == resultAny || t.String() == string(r) || t.IsExactType(cel.DynType) || t.IsExactType(cel.AnyType)
}
