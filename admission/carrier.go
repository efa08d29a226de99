// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// carrier checks the specification of a claim or of a template.
func (c *Checker) carrier(ctx context.Context, carrier v1alpha1.Carrier, classes v1alpha1.ClassGetter) Verdict {
	j := &judgement{Checker: c, carrier: carrier, devices: carrier.Path.Child("devices")}
	if err := carrier.CheckTexts(); err != nil {
		j.Errors = fieldErrors(err)
		return j.Verdict
	}
	definitions, err := carrier.Definitions()
	j.Errors = fieldErrors(err)
	j.own(ctx, definitions)
	// If the claim's own definitions are wrong, resolving its references would report the same mistakes again.
	if err == nil {
		j.references(ctx, classes)
	}
	j.preferences(ctx, classes)
	nodeSets, err := carrier.NodeSets()
	c.nodeSets(ctx, nodeSets, err, &j.Verdict)
	j.misspelt()
	j.counts(classes)
	j.warnOfSelectors(c.selectorsOfRequests(ctx, carrier.Spec.Devices.Requests, j.devices.Child("requests")))
	return j.Verdict
}

// judgement collects the verdict on one claim or PodGroup.
type judgement struct {
	*Checker
	Verdict
	carrier v1alpha1.Carrier
	devices *field.Path
}

func (j *judgement) warn(format string, args ...any) {
	j.Warnings = append(j.Warnings, oneLine(fmt.Sprintf(format, args...)))
}

// own checks the definitions in the claim itself. A definition that does not compile is an error only if a constraint refers to
// the definition, because the scheduler compiles only such definitions.
func (j *judgement) own(ctx context.Context, definitions []v1alpha1.Definition) {
	unreferenced := map[string]bool{}
	for _, name := range v1alpha1.Unreferenced(j.carrier.Spec) {
		unreferenced[name] = true
	}
	for _, definition := range definitions {
		_, err := j.options.Environment.Compile(ctx, definition.Expression, definition.Variables...)
		switch {
		case err != nil && unreferenced[definition.Name]:
			j.warn("%s: no constraint refers to %q, and its expression does not compile: %s", definition.Source.Field, definition.Name, briefly(err))
		case err != nil:
			j.refuse(definition.Source, "expression", definition.Expression, definition.Variables, err)
		case unreferenced[definition.Name]:
			j.warn("%s: no constraint refers to %q, so the definition has no effect; add matchAttribute: %s/%s to %s",
				definition.Source.Field, definition.Name, v1alpha1.AttributeDomain, definition.Name, j.devices.Child("constraints"))
		}
	}
}

// references checks the constraints of the claim, and the definitions of classes that these constraints refer to.
func (j *judgement) references(ctx context.Context, classes v1alpha1.ClassGetter) {
	constraints, err := j.carrier.Resolve(classes)
	for _, err := range fieldErrors(err) {
		if err.Origin != v1alpha1.OriginUnavailableClass {
			j.Errors = append(j.Errors, err)
			continue
		}
		j.Undecided = true
		j.warn("%s: pods that use the claim will wait until the class exists and can be read", err.Error())
	}
	for _, constraint := range constraints {
		path, attribute := j.devices.Child("constraints").Index(constraint.Index), "matchAttribute"
		if constraint.Default {
			path, attribute = j.devices.Child("requests").Key(constraint.Requests[0]), "deviceClassName"
		}
		expression, err := j.options.Environment.Compile(ctx, constraint.Expression, constraint.Variables...)
		switch {
		case err == nil:
			j.Warnings = append(j.Warnings, j.constraintWarnings(path, constraint, expression)...)
		case constraint.Source.Object != j.carrier.Object:
			j.refuseExpression(field.Invalid(path.Child(attribute), field.OmitValueType{},
				shortened(fmt.Sprintf("%s: %s", constraint.Source, err))), textOf(constraint.Expression, constraint.Variables), err)
		}
	}
}

func (j *judgement) constraintWarnings(path *field.Path, constraint v1alpha1.Constraint, expression *device.Expression) []string {
	where := path.String()
	name := constraint.Label()
	result := append(suspicionWarnings(where, name, expression), orderWarning(where, name, "verdict", expression)...)
	asked := demandOf(&j.carrier.Spec.Devices, constraint.Requests, j.options.Devices)
	result = append(result, costWarning(where, name, expression, asked)...)
	return append(result, setsWarning(where, name, expression, asked)...)
}

// fieldErrors returns the field errors in an error of package v1alpha1. The callers pass no other errors.
func fieldErrors(err error) field.ErrorList {
	if err == nil {
		return nil
	}
	if found, ok := errors.AsType[*v1alpha1.Error](err); ok {
		return found.Errors
	}
	return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
}

// refuse adds an error for an expression of a definition, or for one of its variables, that does not compile. name is the name
// of the field with the expression. The error omits the field's value, because CEL's message already has the line with the
// mistake.
func (v *Verdict) refuse(source v1alpha1.Source, name, expression string, variables []v1alpha1.Variable, err error) {
	path := source.Path()
	if failure, ok := errors.AsType[*cel.Error](err); ok && failure.Variable != "" {
		i := slices.IndexFunc(variables, func(v v1alpha1.Variable) bool { return v.Name == failure.Variable })
		path, name = path.Child("variables").Index(i), "expression"
	}
	v.refuseExpression(field.Invalid(path.Child(name), field.OmitValueType{}, shortened(err.Error())), textOf(expression, variables), err)
}

// textOf returns an expression and its variables as one text. If two texts are equal, so are the compilation errors.
func textOf(expression string, variables []v1alpha1.Variable) string {
	for _, v := range variables {
		expression += "\n" + v.Name + ": " + v.Expression
	}
	return expression
}

// maxText is the maximum length of one error in bytes. The limit is needed because CEL prints the line of each mistake, and a
// line may have 10 KiB.
const maxText = 4 << 10

func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + " ..."
}

// briefly returns the first mistake in an error, on one line.
func briefly(err error) string {
	failure, ok := errors.AsType[*cel.Error](err)
	if !ok || failure.Line == 0 {
		return err.Error()
	}
	in := ""
	if failure.Variable != "" {
		in = "variable " + failure.Variable + ", "
	}
	return fmt.Sprintf("%sline %d, column %d: %s", in, failure.Line, failure.Column, failure.Message)
}

// oneLine returns the text without characters that a header of an HTTP response can't have, such as line breaks.
func oneLine(text string) string {
	return shortened(strings.Join(strings.Fields(text), " "))
}
