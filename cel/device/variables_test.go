// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

type variables []v1alpha1.Variable

var oneNUMANode = variables{
	{Name: "numa", Expression: `device.driver == 'dra.net' ? device.attributes['dra.net'].numaNode :
		{'0008': 0, '0009': 0, '0018': 1, '0019': 1}[device.attributes['resource.kubernetes.io'].pcieRoot.substring(3, 7)]`},
}

// TestVariablesEqualTheirTexts compares expressions that read variables with the same expressions written without variables.
// Values, failures and costs must be equal.
func TestVariablesEqualTheirTexts(t *testing.T) {
	for name, test := range map[string]struct {
		variables
		with, without string
	}{
		"one before": {
			variables{
				{Name: "i", Expression: "device.attributes['mla.example.com'].index"}, {Name: "half", Expression: "variables.i / 2"},
				{Name: "quarter", Expression: "device.variables.half / 2 + variables.i * 0"},
			},
			"devices.all(d, d.variables.quarter == 0)",
			"devices.all(d, d.attributes['mla.example.com'].index / 2 / 2 + d.attributes['mla.example.com'].index * 0 == 0)",
		},
		"not captured": {
			variables{{Name: "any", Expression: "[1, 2].exists(d, d == device.attributes['mla.example.com'].index)"}},
			"devices.all(d, d.variables.any)", "devices.all(d, cel.bind(x, d, [1, 2].exists(d, d == x.attributes['mla.example.com'].index)))",
		},
		"a loop over something called device": {
			variables{{Name: "any", Expression: "[1, 2].exists(device, device == 2) && device.driver != ''"}},
			"devices.all(d, d.variables.any)", "devices.all(d, [1, 2].exists(device, device == 2) && d.driver != '')",
		},
		"of an element by its place": {
			variables{{Name: "i", Expression: "device.attributes['mla.example.com'].index"}},
			"devices[0].variables.i < devices.filter(d, d.variables.i > 0)[0].variables.i",
			"cel.bind(a, devices[0], a.attributes['mla.example.com'].index) < " +
				"cel.bind(b, devices.filter(d, d.attributes['mla.example.com'].index > 0)[0], b.attributes['mla.example.com'].index)",
		},
		"a failure that is absorbed": {
			variables{{Name: "x", Expression: "device.attributes['mla.example.com'].none"}},
			"devices.exists(d, d.variables.x == 1 || d.driver == 'mla.example.com')", "devices.exists(d, d.attributes['mla.example.com'].none == 1 || d.driver == 'mla.example.com')",
		},
		"a map of that name": {
			variables{{Name: "x", Expression: "device.driver"}},
			"[{'variables': {'y': 1}}].exists(variables, variables['variables'].y == 1)", "[{'variables': {'y': 1}}].exists(v, v['variables'].y == 1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			with, err := environment.Compile(t.Context(), test.with, test.variables...)
			require.NoError(t, err)
			without, err := environment.Compile(t.Context(), test.without)
			require.NoError(t, err)
			require.Equal(t, without.ReadSet(), with.ReadSet())
			for _, devices := range [][]*device.Device{ring(4), pick(ring(8), 1, 5, 7), ring(1)} {
				requireAlike(t, with, without, devices)
			}
		})
	}
}

func requireAlike(t require.TestingT, with, without *device.Expression, devices []*device.Device) {
	budget, other := cel.NewBudget(1_000_000), cel.NewBudget(1_000_000)
	verdict, err := with.Satisfied(context.Background(), devices, budget)
	want, wantErr := without.Satisfied(context.Background(), devices, other)
	require.Equal(t, want, verdict)
	if wantErr == nil {
		require.NoError(t, err)
	} else {
		var failure, wanted *cel.Error
		require.ErrorAs(t, err, &failure)
		require.ErrorAs(t, wantErr, &wanted)
		require.Equal(t, wanted.Message, failure.Message)
	}
	require.Equal(t, other.Spent(), budget.Spent())
}

// TestRandomVariables compares random expressions that read random variables with the same expressions without variables.
func TestRandomVariables(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		var defined variables
		texts := map[string]string{}
		value := func(element, prefix string) string {
			choices := []string{element + ".attributes['mla.example.com'].index", "2", element + ".attributes['mla.example.com'].?none.orValue(3)",
				element + ".attributes['mla.example.com'].none", "[1, 2, 3].filter(d, d < " + element + ".attributes['mla.example.com'].index).size()"}
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				choices = append(choices, prefix+name)
			}
			return rapid.SampledFrom(choices).Draw(t, "value")
		}
		// writtenOut replaces the names a0, a1, ... by the texts of the variables.
		writtenOut := func(text, prefix, element string) string {
			for name, of := range texts {
				text = strings.ReplaceAll(text, prefix+name, "("+strings.ReplaceAll(of, "device.", element+".")+")")
			}
			return text
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "variables") {
			name := fmt.Sprintf("a%d", i)
			text := fmt.Sprintf("%s %s %s", value("device", "variables."), rapid.SampledFrom([]string{"+", "-", "*", "%"}).Draw(t, "operator"), value("device", "variables."))
			of := writtenOut(text, "variables.", "device")
			defined, texts[name] = append(defined, v1alpha1.Variable{Name: name, Expression: text}), of
		}
		text := fmt.Sprintf(rapid.SampledFrom([]string{
			"devices.all(x, %s > %s)", "devices.exists(x, %s == %s)", "devices.map(x, %s).max() < devices.map(x, %s).sum()",
			"devices.filter(x, %s != %s).size() > 1",
		}).Draw(t, "form"), value("x", "x.variables."), value("x", "x.variables."))
		with, err := environment.Compile(t.Context(), text, defined...)
		require.NoError(t, err, "%s %v", text, defined)
		without, err := environment.Compile(t.Context(), writtenOut(text, "x.variables.", "x"))
		require.NoError(t, err)
		devices := pick(ring(8), rapid.SliceOfN(rapid.IntRange(0, 7), 1, 4).Draw(t, "devices")...)
		requireAlike(t, with, without, devices)
	})
}

func TestConjunctsReadVariablesAsWritten(t *testing.T) {
	expression, err := environment.Compile(t.Context(), "devices.size() == 4 &&\n  devices.all(d, d.variables.numa == 0) && devices[0].variables.numa == 0", oneNUMANode...)
	require.NoError(t, err)
	require.Equal(t, []device.Conjunct{
		{Text: "devices.size() == 4", Line: 1, Column: 1},
		{Text: "devices.all(d, (d.variables.numa) == 0)", Line: 2, Column: 3},
		{Text: "devices[0].variables.numa == 0", Line: 2, Column: 44},
	}, expression.Conjuncts())
}

func TestVariablesThatCompileTo(t *testing.T) {
	one := variables{{Name: "a", Expression: "device.driver"}}
	doubling := variables{{Name: "v0", Expression: "device.driver"}}
	for i := range 20 {
		doubling = append(doubling, v1alpha1.Variable{Name: fmt.Sprintf("v%d", i+1), Expression: fmt.Sprintf("variables.v%d + variables.v%d", i, i)})
	}
	many := make(variables, cel.MaxVariables+1)
	for i := range many {
		many[i] = v1alpha1.Variable{Name: fmt.Sprintf("v%d", i), Expression: "1"}
	}
	for name, test := range map[string]struct {
		expression string
		variables
		variable, message string
		line, column      int
	}{
		"unknown":        {"true &&\n  devices.all(d, d.variables.b == '')", one, "", "there is no variable b, only a", 2, 29},
		"later":          {"true", variables{{Name: "a", Expression: "variables.b"}, {Name: "b", Expression: "1"}}, "a", "there is no variable b before this one: define it earlier", 1, 10},
		"itself":         {"true", variables{{Name: "a", Expression: "variables.a"}}, "a", "before this one", 1, 10},
		"presence":       {"devices.all(d, has(d.variables.a))", one, "", "has() can't test a variable, because it always exists: test the attribute that a reads", 1, 0},
		"of no device":   {"variables.a == ''", one, "", "a variable belongs to one element: write d.variables.a, where d is the element of a loop", 1, 10},
		"syntax":         {"true", variables{{Name: "a", Expression: "1 +"}}, "a", "Syntax error", 1, 4},
		"type":           {"true", variables{{Name: "a", Expression: "device.driver +\n 1"}}, "a", "no matching overload", 1, 15},
		"devices":        {"true", variables{{Name: "a", Expression: "devices.size()"}}, "a", "a variable reads one device and can't read the list devices", 1, 1},
		"no device":      {"devices.all(d, 'x'.variables.a == '')", one, "", "", 1, 0},
		"device outside": {"device.driver == ''", one, "", "undeclared reference to 'device'", 1, 1},
		"twice":          {"true", append(one, one...), "a", "another variable has this name: rename one of them", 0, 0},
		"too many":       {"true", many, "", "there are 33 variables, the limit is 32: remove some of them", 0, 0},
		"doubling":       {"devices.all(d, d.variables.v20 == '')", doubling, "v9", "its types would be compared more than 600000 times", 1, 0},
		"too long":       {"true", variables{{Name: "a", Expression: "'" + strings.Repeat("a", cel.MaxExpressionLength) + "'"}}, "", "bytes with its variables, the limit is 10240", 0, 0},
		"not bool":       {"devices.map(d, d.variables.a)", one, "", "must return bool", 1, 1},
		"UTF-8":          {"true", variables{{Name: "a", Expression: "'\xff'"}}, "a", "not valid UTF-8", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := environment.Compile(t.Context(), test.expression, test.variables...)
			var failure *cel.Error
			require.ErrorAs(t, err, &failure)
			require.Contains(t, failure.Message, test.message)
			require.Equal(t, test.variable, failure.Variable, failure.Error())
			require.Equal(t, test.line, failure.Line, failure.Error())
			if test.column > 0 {
				require.Equal(t, test.column, failure.Column, failure.Error())
			}
			if test.variable != "" {
				require.Contains(t, failure.Error(), "variable "+test.variable+": ")
			}
		})
	}
}

// TestVariablesAreInTheCacheKey checks that the same text with other variables is another cache entry.
func TestVariablesAreInTheCacheKey(t *testing.T) {
	reads := "devices.all(d, d.variables.a == '')"
	for _, test := range []variables{nil, {{Name: "a", Expression: "device.driver"}}, {{Name: "a", Expression: "'x'"}}, {{Name: "b", Expression: "''"}, {Name: "a", Expression: "''"}}} {
		expression, err := environment.Compile(t.Context(), reads, test...)
		if test == nil {
			require.ErrorContains(t, err, "undefined field 'variables'")
			continue
		}
		require.NoError(t, err)
		verdict, err := expression.Satisfied(t.Context(), ring(1), nil)
		require.NoError(t, err)
		require.Equal(t, len(test) == 2, verdict)
	}
}
