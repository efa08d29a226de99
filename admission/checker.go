// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

const (
	// DefaultDevices is how many devices a node is taken to have for a request when sets
	// are counted: admission does not know the nodes.
	DefaultDevices = 64

	// DefaultSchedulerName is the name of the scheduler profile in the manifests.
	DefaultSchedulerName = "celset-scheduler"

	// ManySets is how many sets of devices an expression may have that the search can't
	// read, without a warning. It evaluates about that many in a second.
	ManySets = 100_000
)

// Options say what is checked. The zero value has the defaults.
type Options struct {
	// SchedulerNames are those of the scheduler profiles that know CEL device
	// constraints; empty means [DefaultSchedulerName].
	SchedulerNames []string
	// Devices is how many devices a node is taken to have for a request; zero means
	// [DefaultDevices].
	Devices int
	// Environment compiles the expressions, as the scheduler's does; nil means one of
	// the Checker's own.
	Environment *device.Environment
}

// Checker checks objects. The same objects have the same verdict: it reads nothing but
// what it is given. It is safe for concurrent use.
type Checker struct {
	options Options
	// nodes compiles expressions over nodes.
	nodes *device.Environment
	// selecting compiles device selectors.
	selecting *device.Environment
}

// Verdict is what there is to say of an object.
type Verdict struct {
	// Errors refuse it.
	Errors field.ErrorList
	// Warnings don't. Each is one line.
	Warnings []string
	// OfSelectors is how many of the warnings, the last ones, are about device selectors: claims that have nothing to do with
	// celset have these, too.
	OfSelectors int
	// Undecided: a device class that a claim needs, or the constraint that a PodGroup refers to, does not exist or could not be read.
	// There is a warning of it; the scheduler lets pods wait for as long as that is so.
	Undecided bool

	// expressions are those that errors are about.
	expressions map[*field.Error]failedExpression
}

type failedExpression struct {
	text         string
	line, column int
}

// warnOfSelectors adds the last warnings.
func (v *Verdict) warnOfSelectors(warnings []string) {
	v.Warnings, v.OfSelectors = append(v.Warnings, warnings...), len(warnings)
}

// refuseExpression records that an expression does not compile, and why.
func (v *Verdict) refuseExpression(err *field.Error, expression string, why error) {
	v.Errors = append(v.Errors, err)
	if v.expressions == nil {
		v.expressions = map[*field.Error]failedExpression{}
	}
	failed := failedExpression{text: expression}
	if failure, ok := errors.AsType[*cel.Error](why); ok {
		failed.line, failed.column = failure.Line, failure.Column
	}
	v.expressions[err] = failed
}

// Place is where one of the errors is in its expression, counted from 1; zero if it is not about one.
func (v *Verdict) Place(err *field.Error) (line, column int) {
	return v.expressions[err].line, v.expressions[err].column
}

// NewChecker returns a Checker.
func NewChecker(options Options) (*Checker, error) {
	if len(options.SchedulerNames) == 0 {
		options.SchedulerNames = []string{DefaultSchedulerName}
	}
	if options.Devices <= 0 {
		options.Devices = DefaultDevices
	}
	if options.Environment == nil {
		environment, err := device.NewEnvironment(cel.Config{})
		if err != nil {
			return nil, err
		}
		options.Environment = environment
	}
	nodes, err := device.NewNodeEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	selecting, err := device.NewSelectorEnvironment(cel.Config{})
	return &Checker{options, nodes, selecting}, err
}

// Claim judges a claim. Device classes are asked for what it does not define itself. The error is
// that of the context, which says for whom expressions are compiled ([cel.Environment.Compile]).
func (c *Checker) Claim(ctx context.Context, claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) (Verdict, error) {
	return whole(ctx, c.carrier(ctx, v1alpha1.ClaimCarrier(claim), classes))
}

// Template judges a template as it does the claims that are made of it.
func (c *Checker) Template(ctx context.Context, template *resourceapi.ResourceClaimTemplate, classes v1alpha1.ClassGetter) (Verdict, error) {
	return whole(ctx, c.carrier(ctx, v1alpha1.TemplateCarrier(template), classes))
}

// Class judges the definitions, preferences and node set constraints of a class, whether a claim refers to them or not.
func (c *Checker) Class(ctx context.Context, class *resourceapi.DeviceClass) (Verdict, error) {
	return whole(ctx, c.class(ctx, class))
}

// whole is an error if the verdict may lack what was not compiled any more.
func whole(ctx context.Context, verdict Verdict) (Verdict, error) {
	if ctx.Err() != nil {
		return Verdict{}, fmt.Errorf("check expressions: %w", context.Cause(ctx))
	}
	return verdict, nil
}

func (c *Checker) class(ctx context.Context, class *resourceapi.DeviceClass) Verdict {
	definitions, err := v1alpha1.ClassDefinitions(class)
	result := Verdict{Errors: fieldErrors(err)}
	for _, definition := range definitions {
		expression, err := c.options.Environment.Compile(ctx, definition.Expression, definition.Variables...)
		if err != nil {
			result.refuse(definition.Source, "expression", definition.Expression, definition.Variables, err)
			continue
		}
		result.Warnings = append(result.Warnings, defaultWarning(definition)...)
		result.Warnings = append(result.Warnings, suspicionWarnings(definition.Source.Field, definition.Name, expression)...)
		result.Warnings = append(result.Warnings, orderWarning(definition.Source.Field, definition.Name, "verdict", expression)...)
	}
	c.classPreferences(ctx, class, &result)
	nodeSets, err := v1alpha1.ClassNodeSets(class)
	c.nodeSets(ctx, nodeSets, err, &result)
	for i := range class.Spec.Config {
		if err := misspeltDriver(class.Spec.Config[i].DeviceConfiguration, field.NewPath("spec", "config").Index(i)); err != nil {
			result.Errors = append(result.Errors, err)
		}
	}
	result.warnOfSelectors(c.selectorsOfClass(ctx, class))
	return result
}
