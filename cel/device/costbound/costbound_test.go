// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/cel-go/common/ast"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/randomexpr"
	"github.com/celset/celset/internal/testing/shape"
)

func environment(t testing.TB) *device.Environment {
	t.Helper()
	e, err := device.NewEnvironment(cel.Config{CostLimit: math.MaxUint64})
	require.NoError(t, err)
	return e
}

func compile(t testing.TB, e *device.Environment, text string) *device.Expression {
	t.Helper()
	expression, err := e.Compile(t.Context(), text)
	require.NoError(t, err, text)
	return expression
}

// requireBounded evaluates an expression and fails if the cost exceeds the bound. It returns both numbers.
func requireBounded(t require.TestingT, expression *device.Expression, text string, set []*device.Device, sizes device.Sizes) (actual uint64, bound float64) {
	budget := cel.NewBudget(math.MaxUint64)
	_, _ = expression.Satisfied(context.Background(), set, budget) // a failure is charged, too
	bound = costbound.Of(expression, len(set), sizes).Units()
	require.False(t, math.IsNaN(bound), text)
	require.LessOrEqual(t, float64(budget.Spent()), bound, "%s\nof %d devices", text, len(set))
	return budget.Spent(), bound
}

var attributes = randomexpr.Attributes{
	Domain: "d", Ints: []string{"x", "y"}, String: "s",
	Strings: "list", Version: "version", Bool: "flag", Capacity: "memory", Drivers: []string{"d", "e"},
}

// devices draws n devices. Some devices have long strings and lists.
func devices(t *rapid.T, n int) []*device.Device {
	texts := rapid.SampledFrom([]string{"a", "b", "c", "", strings.Repeat("ä", 32)})
	result := make([]*device.Device, n)
	for i := range result {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"y":         {IntValue: new(rapid.Int64Range(-1, 4).Draw(t, "y"))},
			"d/s":       {StringValue: new(texts.Draw(t, "s"))},
			"d/list":    {StringValues: rapid.SliceOfN(texts, 1, 8).Draw(t, "list")},
			"d/version": {VersionValue: new("1.2.0")},
			"d/flag":    {BoolValue: new(rapid.Bool().Draw(t, "flag"))},
		}}
		switch rapid.IntRange(0, 3).Draw(t, "x") {
		case 0: // missing
		case 1:
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{StringValue: new(texts.Draw(t, "text"))}
		default:
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{IntValue: new(rapid.Int64Range(0, 4).Draw(t, "int"))}
		}
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"d/memory": {Value: *resource.NewQuantity(1<<30, resource.BinarySI)}}
		result[i] = device.New(rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(t, "driver"), d)
	}
	return result
}

// TestNoEvaluationCostsMore checks that no evaluation costs more than its bound, for random expressions and devices.
func TestNoEvaluationCostsMore(t *testing.T) {
	e, compiled, finite, close := environment(t), 0, 0, 0
	cases.CheckN(t, cases.Of(800, 4000), costs(e, func(actual uint64, bound float64) {
		compiled++
		if !math.IsInf(bound, 1) {
			finite++
		}
		if bound <= 8*float64(actual) {
			close++
		}
	}))
	t.Logf("%d expressions, %d bounded, %d within eight times", compiled, finite, close)
	require.Greater(t, finite, compiled*9/10)
	require.Greater(t, close, compiled/8)
}

func FuzzNoEvaluationCostsMore(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(costs(environment(f), func(uint64, float64) {})))
}

func costs(e *device.Environment, seen func(actual uint64, bound float64)) func(*rapid.T) {
	return func(t *rapid.T) {
		text := randomexpr.Condition(t, attributes)
		expression, err := e.Compile(t.Context(), text)
		if err != nil {
			return
		}
		set := devices(t, rapid.IntRange(1, 8).Draw(t, "devices"))
		seen(requireBounded(t, expression, text, set, device.SizesOf(set)))
	}
}

// TestSizesOfTheAPI checks that LargestSizes is at least as large as the sizes of real devices.
func TestSizesOfTheAPI(t *testing.T) {
	e := environment(t)
	for _, c := range corpus.Expressions() {
		expression := compile(t, e, c.Text)
		var set []*device.Device
		for _, d := range c.Hardware.Devices() {
			if len(set) < 32 {
				set = append(set, device.New(d.Driver, &d.Device))
			}
		}
		actual, exact := requireBounded(t, expression, c.Text, set, device.SizesOf(set))
		_, largest := requireBounded(t, expression, c.Text, set, device.LargestSizes())
		require.LessOrEqual(t, exact, largest)
		t.Logf("%s: %d devices: %d, at most %.0f, or %.0f", c.Name, len(set), actual, exact, largest)
	}
}

// mentions reports whether an expression over a device d calls the function.
func mentions(t testing.TB, e *device.Environment, text, function string) bool {
	t.Helper()
	tree := compile(t, e, "devices.all(d, "+text+")").AST()
	return len(ast.MatchDescendants(ast.NavigateAST(tree), ast.FunctionMatcher(function))) > 0
}

// TestKnownExpressionsAreWithinTheLimit checks that the bound of each known set shape and corpus expression is within the cost
// limit.
func TestKnownExpressionsAreWithinTheLimit(t *testing.T) {
	e := environment(t)
	within := func(name, text string, devices int, sizes device.Sizes) {
		require.LessOrEqual(t, costbound.Of(compile(t, e, text), devices, sizes).Units(), float64(cel.DefaultCostLimit), name)
	}
	for _, s := range shape.Scenarios() {
		size := 0
		for _, r := range s.Requests {
			size += r.Count
		}
		within(s.Name, s.Expression, size, device.LargestSizes())
	}
	for _, c := range corpus.Expressions() {
		var all []*device.Device
		for _, d := range c.Hardware.Devices() {
			all = append(all, device.New(d.Driver, &d.Device))
		}
		size := 0
		for _, r := range c.Requests {
			size += r.Count
		}
		within(c.Name, c.Text, size, device.SizesOf(all))
		within(c.Name, c.Text, 8, device.SizesOf(all))
	}
}
