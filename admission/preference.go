// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// preferences checks the preferences of the claim itself and of the classes of its requests.
func (j *judgement) preferences(ctx context.Context, classes v1alpha1.ClassGetter) {
	own, err := j.carrier.Preferences()
	j.Errors = append(j.Errors, fieldErrors(err)...)
	for _, preference := range own {
		if expression, ok := j.preferenceExpression(ctx, preference, &j.Verdict); ok {
			j.preferenceWarnings(preference, expression)
		}
	}
	if err == nil {
		j.preferencesOfClasses(ctx, classes)
	}
}

// preferencesOfClasses checks each preference of a class once. If several requests use the class, it checks the preference for
// the request with the most sets. It does not warn about preferences without effect, because the claim's author can't change
// the class.
func (j *judgement) preferencesOfClasses(ctx context.Context, classes v1alpha1.ClassGetter) {
	resolved, err := j.carrier.ResolvePreferences(classes)
	j.Errors = append(j.Errors, fieldErrors(err)...)
	var sources []v1alpha1.Source
	most := map[v1alpha1.Source]preferenceOfClass{}
	for _, preference := range resolved {
		if preference.Source.Object == j.carrier.Object || preference.Policy != "" {
			continue
		}
		asked := demandOf(&j.carrier.Spec.Devices, preference.Requests, j.options.Devices)
		known, found := most[preference.Source]
		if !found {
			sources = append(sources, preference.Source)
		}
		if !found || asked.sets.Cmp(known.asked.sets) > 0 {
			most[preference.Source] = preferenceOfClass{preference, asked}
		}
	}
	for _, source := range sources {
		j.preferenceOfClass(ctx, most[source])
	}
}

// preferenceOfClass is a preference of a class, and the demand of the request that it is checked for.
type preferenceOfClass struct {
	v1alpha1.Preference
	asked demand
}

func (j *judgement) preferenceOfClass(ctx context.Context, p preferenceOfClass) {
	path := j.devices.Child("requests").Key(p.Requests[0])
	expression, err := j.options.Environment.CompileInt(ctx, p.Expression, p.Variables...)
	if err != nil {
		j.refuseExpression(field.Invalid(path.Child("deviceClassName"), field.OmitValueType{},
			shortened(fmt.Sprintf("%s: %s", p.Source, err))), textOf(p.Expression, p.Variables), err)
		return
	}
	j.valueWarnings(path.String(), p.Label(), expression, p.asked)
}

// classPreferences adds the errors and warnings about the preferences of a class to the verdict.
func (c *Checker) classPreferences(ctx context.Context, class *resourceapi.DeviceClass, verdict *Verdict) {
	preferences, err := v1alpha1.ClassPreferences(class)
	verdict.Errors = append(verdict.Errors, fieldErrors(err)...)
	for _, preference := range preferences {
		if expression, _ := c.preferenceExpression(ctx, preference, verdict); expression != nil {
			verdict.Warnings = append(verdict.Warnings, suspicionWarnings(preference.Source.Field, preference.Name, expression)...)
			verdict.Warnings = append(verdict.Warnings, orderWarning(preference.Source.Field, preference.Name, "value", expression)...)
		}
	}
}

// preferenceExpression compiles the expression of a preference. It returns nil for a preference with a policy. If the
// expression does not compile, it adds an error to the verdict and returns false.
func (c *Checker) preferenceExpression(ctx context.Context, preference v1alpha1.Preference, verdict *Verdict) (expression *device.Expression, ok bool) {
	if preference.Policy != "" {
		return nil, true
	}
	expression, err := c.options.Environment.CompileInt(ctx, preference.Expression, preference.Variables...)
	if err != nil {
		verdict.refuse(preference.Source, "expression", preference.Expression, preference.Variables, err)
		return nil, false
	}
	return expression, true
}

// preferenceWarnings adds the warnings about a preference of the claim. expression is nil for a policy.
func (j *judgement) preferenceWarnings(preference v1alpha1.Preference, expression *device.Expression) {
	where := preference.Source.Field
	if isOneSet(&j.carrier.Spec.Devices, preference.Requests) {
		j.warn("%s: %s has no effect, because allocationMode: All leaves no choice; remove it, or ask for a count", where, preference.Name)
		return
	}
	if expression != nil {
		j.valueWarnings(where, preference.Name, expression, demandOf(&j.carrier.Spec.Devices, preference.Requests, j.options.Devices))
	}
}

func (j *judgement) valueWarnings(where, name string, expression *device.Expression, asked demand) {
	j.Warnings = append(j.Warnings, suspicionWarnings(where, name, expression)...)
	j.Warnings = append(j.Warnings, orderWarning(where, name, "value", expression)...)
	j.Warnings = append(j.Warnings, costWarning(where, name, expression, asked)...)
	if asked.sets.Cmp(big.NewInt(ManySets)) > 0 && !bound.AnalyzeGoal(expression, asked.devices, false).Understood() {
		j.warn("%s: %s: the search can't read the preference, so it may have to evaluate %s sets of %d devices on a node, and takes the best set within its budget; "+
			"write it as docs/constraints.md#what-makes-it-fast describes", where, name, number(asked.sets), asked.devices)
	}
}

// isOneSet reports whether every covered request asks for all devices of a node, so that only one set is possible. If covered
// is empty, all requests are covered.
func isOneSet(devices *resourceapi.DeviceClaim, covered []string) bool {
	found := false
	for i := range devices.Requests {
		request := &devices.Requests[i]
		isCovered := func(name string) bool {
			return len(covered) == 0 || slices.Contains(covered, request.Name) || slices.Contains(covered, name)
		}
		if exactly := request.Exactly; exactly != nil && isCovered(request.Name) {
			found = true
			if exactly.AllocationMode != resourceapi.DeviceAllocationModeAll {
				return false
			}
		}
		for k := range request.FirstAvailable {
			alternative := &request.FirstAvailable[k]
			if !isCovered(request.Name + "/" + alternative.Name) {
				continue
			}
			found = true
			if alternative.AllocationMode != resourceapi.DeviceAllocationModeAll {
				return false
			}
		}
	}
	return found
}
