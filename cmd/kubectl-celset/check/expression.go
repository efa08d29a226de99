// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// expression sets the facts about a constraint's expression. It returns nil if the expression does not compile; the findings of
// admission already contain that error.
func (c *checker) expression(ctx context.Context, object *Object, result *Constraint, where, text string, variables []v1alpha1.Variable, candidates []candidates, has published) *device.Expression {
	expression, err := c.environment.Compile(ctx, text, variables...)
	if err != nil {
		return nil
	}
	size := slices.Max(result.Devices)
	analysis := bound.Analyze(expression, size)
	result.Pruned = analysis.Leading(devicesOf(candidates)) != nil
	result.TooExpensive = analysis.Understood() && !result.Pruned
	result.Conjuncts = c.conjuncts(ctx, expression, variables, size)
	result.describe(expression, size, candidates)
	c.origins(&result.Facts, candidates)
	c.attributes(expression, has, candidates, findings{object: object, where: where, name: result.Name, text: text})
	return expression
}

// describe sets the facts that constraints and preferences have in common.
func (f *Facts) describe(expression *device.Expression, size int, candidates []candidates) {
	f.Type = expression.OutputType()
	if cost, err := expression.EstimateCost(size); err == nil {
		f.Cost, f.CostLimit = cost, cel.DefaultCostLimit
	}
	read := expression.ReadSet()
	f.ReadsAll = read.All
	has, missing := publishedBy(candidates), len(devicesOf(candidates))
	for name := range read.Attributes {
		f.Reads = append(f.Reads, has.attribute(name, missing))
	}
	slices.SortFunc(f.Reads, func(a, b Attribute) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name))
	})
}

// devicesOf returns the distinct devices of all candidates. The cost estimate uses the lengths of their texts and lists.
func devicesOf(candidates []candidates) []*device.Device {
	var devices []*device.Device
	for _, one := range distinct(candidates) {
		devices = append(devices, device.New(one.id.Driver.String(), one.device))
	}
	return devices
}

// conjuncts returns, for each conjunct alone, whether the search understands it.
func (c *checker) conjuncts(ctx context.Context, expression *device.Expression, variables []v1alpha1.Variable, size int) []Conjunct {
	var result []Conjunct
	for _, conjunct := range expression.Conjuncts() {
		result = append(result, Conjunct{
			Text: conjunct.Text, Line: conjunct.Line, Column: conjunct.Column,
			Understanding: c.understanding(ctx, conjunct.Text, variables, size),
		})
	}
	return result
}

func (c *checker) understanding(ctx context.Context, text string, variables []v1alpha1.Variable, size int) Understanding {
	part, err := c.environment.Compile(ctx, text, variables...)
	if err != nil {
		return NotUnderstood
	}
	switch analysis := bound.Analyze(part, size); {
	case !analysis.Understood():
		return NotUnderstood
	case analysis.Open() > 0:
		return PartlyUnderstood
	default:
		return Understood
	}
}

// AttributeType returns the type of the value of an attribute, such as "int" or "list(string)".
func AttributeType(value resourceapi.DeviceAttribute) string {
	switch {
	case value.IntValue != nil:
		return "int"
	case value.BoolValue != nil:
		return "bool"
	case value.StringValue != nil:
		return "string"
	case value.VersionValue != nil:
		return "version"
	case value.IntValues != nil:
		return "list(int)"
	case value.BoolValues != nil:
		return "list(bool)"
	case value.StringValues != nil:
		return "list(string)"
	case value.VersionValues != nil:
		return "list(version)"
	default:
		return "unknown"
	}
}
