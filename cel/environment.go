// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/decls"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// MaxExpressionLength is the longest expression that is compiled, in bytes.
	// It is the limit that Kubernetes has for device selectors.
	MaxExpressionLength = resourceapi.CELSelectorExpressionMaxLength

	// DefaultCostLimit is the runtime cost, in CEL cost units, that one evaluation
	// may reach. It is the limit that Kubernetes has for device selectors.
	DefaultCostLimit uint64 = resourceapi.CELSelectorExpressionMaxCost

	// DefaultCacheSize is how many compilations an Environment remembers. With
	// expressions of at most [MaxExpressionLength] it bounds the memory that
	// untrusted expressions can take.
	DefaultCacheSize = 128
)

// Config describes an [Environment].
type Config struct {
	// Name tells environments apart in metrics, for example "devices".
	Name string
	// Types are the object types that the variables use.
	Types []*apiservercel.DeclType
	// Options declare the variables and functions of this kind of input.
	Options []cel.EnvOption
	// CostLimit bounds one evaluation; zero means [DefaultCostLimit].
	CostLimit uint64
	// CacheSize is the number of compilations remembered; zero means
	// [DefaultCacheSize].
	CacheSize int
	// Observer is told about compilations and evaluations; nil means nobody is.
	Observer Observer
}

// Environment compiles the expressions over one kind of input. It is safe for
// concurrent use.
type Environment struct {
	name      string
	env       *cel.Env
	costLimit uint64
	cache     *compilations
	observer  Observer
}

// NewEnvironment extends the CEL environment of the pinned Kubernetes version.
// It uses what Kubernetes uses for stored expressions, that is every library
// of that version: whether an expression is new is known to admission only.
func NewEnvironment(config Config) (*Environment, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        config.Options,
			DeclTypes:         config.Types,
		})
	if err != nil {
		return nil, fmt.Errorf("extend the Kubernetes CEL environment for %s: %w", config.Name, err)
	}
	if config.CostLimit == 0 {
		config.CostLimit = DefaultCostLimit
	}
	if config.CacheSize <= 0 {
		config.CacheSize = DefaultCacheSize
	}
	if config.Observer == nil {
		config.Observer = unobserved{}
	}
	return &Environment{
		name:      config.Name,
		env:       set.StoredExpressionsEnv(),
		costLimit: config.CostLimit,
		cache:     newCompilations(config.CacheSize),
		observer:  config.Observer,
	}, nil
}

// Functions returns the declarations of all functions and operators, by name.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.env.Functions() }

// Compile returns the program of an expression that evaluates to bool. The
// error is an [*Error] with the position of the mistake.
func (e *Environment) Compile(expression string) (*Program, error) {
	result, hit := e.cache.get(expression, e.compile)
	e.observer.ObserveCompilation(e.name, hit, result.err)
	return result.program, result.err
}

func (e *Environment) compile(expression string) (program *Program, err error) {
	if len(expression) > MaxExpressionLength {
		return nil, &Error{
			Reason:  ReasonTooLong,
			Message: fmt.Sprintf("the expression has %d bytes, the limit is %d", len(expression), MaxExpressionLength),
		}
	}
	if !utf8.ValidString(expression) {
		return nil, &Error{Reason: ReasonInvalid, Message: "the expression is not valid UTF-8"}
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
	ast, issues := e.env.Compile(expression)
	if issues.Err() != nil {
		return nil, compileError(expression, issues)
	}
	if !boolLike(ast.OutputType()) {
		return nil, positioned(ReasonType, common.NewTextSource(expression), common.NewLocation(1, 0),
			fmt.Sprintf("the expression must return bool, it returns %s", ast.OutputType()))
	}
	plan, err := e.env.Program(ast,
		cel.CostLimit(e.costLimit),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, &Error{Reason: ReasonInvalid, Expression: expression, Message: err.Error(), err: err}
	}
	return &Program{environment: e, expression: expression, ast: ast, program: plan}, nil
}

// boolLike accepts what may still turn out to be a bool when it is evaluated,
// as Kubernetes does for device selectors.
func boolLike(t *cel.Type) bool {
	return t.IsExactType(cel.BoolType) || t.IsExactType(cel.DynType) || t.IsExactType(cel.AnyType)
}
