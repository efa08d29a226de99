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
	"github.com/celset/celset/deviceattributes"
)

const (
	// DefaultDevices is the assumed number of devices per node for a request when sets are counted. Admission sees no nodes.
	DefaultDevices = 64

	// DefaultSchedulerName is the name of the scheduler profile in the manifests.
	DefaultSchedulerName = "celset-scheduler"

	// ManySets is the number of device sets above which an expression that the search can't analyze gets a warning. The search
	// evaluates about this many sets in a second.
	ManySets = 100_000
)

// Options configures a Checker. The zero value means the defaults.
type Options struct {
	// SchedulerNames are the names of the scheduler profiles that support CEL device constraints. Empty means
	// [DefaultSchedulerName].
	SchedulerNames []string
	// Devices is the assumed number of devices on a node that a request can choose from. Zero means [DefaultDevices].
	Devices int
	// Environment compiles the expressions as the scheduler does. If it is nil, the Checker creates its own.
	Environment *device.Environment
}

// Checker checks objects. It reads only its arguments, so that equal objects get equal verdicts. It is safe for concurrent use.
type Checker struct {
	options Options
	// nodes compiles expressions over nodes.
	nodes *device.Environment
	// selecting compiles device selectors.
	selecting *device.Environment
	// attributes checks DeviceAttributes objects.
	attributes *deviceattributes.Enricher
}

// Verdict is the result of checking an object.
type Verdict struct {
	// Errors are the reasons to reject the object.
	Errors field.ErrorList
	// Warnings don't reject the object. Each is one line.
	Warnings []string
	// OfSelectors is the number of warnings about device selectors, the last ones in Warnings. Claims that do not use celset get
	// these warnings, too.
	OfSelectors int
	// Undecided is true if a device class of a claim, or the constraint of a PodGroup, does not exist or could not be read. Warnings
	// includes a warning about it. The scheduler keeps pods waiting until the object is available.
	Undecided bool

	// expressions maps each error about an expression to that expression.
	expressions map[*field.Error]failedExpression
}

type failedExpression struct {
	text         string
	line, column int
}

// warnOfSelectors appends the warnings about device selectors. No warnings may follow them.
func (v *Verdict) warnOfSelectors(warnings []string) {
	v.Warnings, v.OfSelectors = append(v.Warnings, warnings...), len(warnings)
}

// refuseExpression adds err, the field error for an expression that does not compile. why is the error of the compiler.
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

// Position returns the position of an error in its expression, counted from 1. It returns zero if the error is not about an
// expression.
func (v *Verdict) Position(err *field.Error) (line, column int) {
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
	if err != nil {
		return nil, err
	}
	attributes, err := deviceattributes.NewEnricher(deviceattributes.Config{})
	return &Checker{options, nodes, selecting, attributes}, err
}

// Claim checks a claim. It looks up definitions that are not in the claim in the device classes. The context carries the tenant
// for fair turns in compiling ([cel.Environment.Compile]). The error is the error of the context.
func (c *Checker) Claim(ctx context.Context, claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) (Verdict, error) {
	return whole(ctx, c.carrier(ctx, v1alpha1.ClaimCarrier(claim), classes))
}

// Template checks a template as Claim checks the claims made from it.
func (c *Checker) Template(ctx context.Context, template *resourceapi.ResourceClaimTemplate, classes v1alpha1.ClassGetter) (Verdict, error) {
	return whole(ctx, c.carrier(ctx, v1alpha1.TemplateCarrier(template), classes))
}

// Class checks the definitions, preferences and node set constraints of a class, with or without a reference to them.
func (c *Checker) Class(ctx context.Context, class *resourceapi.DeviceClass) (Verdict, error) {
	return whole(ctx, c.class(ctx, class))
}

// whole returns the verdict, or an error if the context has ended, because the verdict may then be incomplete.
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
