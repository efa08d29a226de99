// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/randomexpr"
	"github.com/celset/celset/internal/testing/transcript"
)

// reordered returns some permutations of a set.
func reordered(set []*device.Device) [][]*device.Device {
	reversed := slices.Clone(set)
	slices.Reverse(reversed)
	result := [][]*device.Device{reversed}
	for i := 1; i < len(set); i++ {
		result = append(result, slices.Concat(set[i:], set[:i]), slices.Concat(reversed[i:], reversed[:i]))
	}
	return result
}

// TestRealExpressionsInAnyOrder lists the expressions of the corpus that are reported as order-dependent. It checks that the
// values of all other expressions don't depend on the order.
func TestRealExpressionsInAnyOrder(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	var dependent []string
	for _, e := range corpus.Expressions() {
		compiled, err := environment.Compile(t.Context(), e.Text)
		require.NoError(t, err)
		if _, found := compiled.OrderDependence(); found {
			dependent = append(dependent, e.Name)
			continue
		}
		for _, set := range setsOf(e) {
			want, err := compiled.Satisfied(t.Context(), set, nil)
			require.NoError(t, err)
			for _, other := range reordered(set) {
				got, err := compiled.Satisfied(t.Context(), other, nil)
				require.NoError(t, err)
				require.Equal(t, want, got, e.Name)
			}
		}
	}
	require.Equal(t, []string{
		"ring: sorted and without gaps", "ring: by place",
		"coupled: the same roots in order", "coupled: by place", "pod: a plane",
		"pod: one generation", "host: bandwidth as a quantity", "host: one MTU", "host: a common rail",
		"host: no rail twice", "sockets: the last is on another socket",
		"sockets: two requests on different sockets",
	}, dependent)
}

// TestRandomExpressionsInAnyOrder checks that random expressions have the same value in any order, unless they are reported.
// Whether an evaluation fails may depend on the order, because CEL stops at the first true or false.
func TestRandomExpressionsInAnyOrder(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	compared, dependent := 0, 0
	cases.Check(t, func(t *rapid.T) {
		compiled, err := environment.Compile(t.Context(), randomexpr.Condition(t, randomexpr.Attributes{
			Domain: "d", Ints: []string{"x", "y"}, String: "s", Strings: "list", Version: "version", Bool: "flag", Capacity: "memory", Drivers: []string{"d", "e"},
		}))
		if err != nil {
			return
		}
		if _, found := compiled.OrderDependence(); found {
			dependent++
			return
		}
		set := rapid.SliceOfN(rapid.Custom(randomDevice), 1, 4).Draw(t, "set")
		want, err := compiled.Satisfied(t.Context(), set, nil)
		for _, other := range reordered(set) {
			got, otherErr := compiled.Satisfied(t.Context(), other, nil)
			if err == nil && otherErr == nil {
				compared++
				require.Equal(t, want, got)
			}
		}
	})
	require.Positive(t, min(compared, dependent))
}

func randomDevice(t *rapid.T) *device.Device {
	letter := rapid.SampledFrom([]string{"a", "b", "c"})
	return device.New(rapid.SampledFrom([]string{"d", "e"}).Draw(t, "driver"), &resourceapi.Device{
		Attributes: attributes{
			"d/x": rapid.IntRange(0, 3).Draw(t, "x"), "d/y": rapid.IntRange(0, 3).Draw(t, "y"), "d/s": letter.Draw(t, "s"),
			"d/list": []string{letter.Draw(t, "first"), letter.Draw(t, "second")}, "d/flag": rapid.Bool().Draw(t, "flag"), "d/version": version("1.1.0"),
		}.api(),
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"d/memory": {Value: *resource.NewQuantity(rapid.Int64Range(1, 4).Draw(t, "memory")<<30, resource.BinarySI)},
		},
	})
}

// TestExpressions checks the facts that this package derives from expressions without evaluating them.
func TestExpressions(t *testing.T) {
	transcript.Run(t, "testdata/expressions.txt", func(t *testing.T, text string) string {
		expression, err := environment.Compile(t.Context(), text)
		require.NoError(t, err)
		var known []string
		if returns := expression.OutputType(); returns != "bool" {
			known = append(known, "returns "+returns)
		}
		if place, found := expression.OrderDependence(); found {
			known = append(known, fmt.Sprintf("depends on the order at %d:%d", place.Line, place.Column))
		}
		switch read := expression.ReadSet(); {
		case read.All:
			known = append(known, "reads anything")
		case len(read.Attributes) > 0:
			known = append(known, "reads "+strings.Join(namesOf(read.Attributes), " "))
		}
		if conjuncts := expression.Conjuncts(); len(conjuncts) != 1 || conjuncts[0].Text != strings.ReplaceAll(text, "'", `"`) {
			for _, c := range conjuncts {
				known = append(known, fmt.Sprintf("%d:%d %s", c.Line, c.Column, c.Text))
			}
		}
		return strings.Join(known, "\n")
	})
}

func namesOf(attributes map[device.AttributeName]bool) []string {
	var names []string
	for name := range attributes {
		names = append(names, name.Domain+"/"+name.ID)
	}
	slices.Sort(names)
	return names
}

// TestConjunctsOfTheCorpusCompile checks that each conjunct of an expression in the corpus compiles and can't be split further.
func TestConjunctsOfTheCorpusCompile(t *testing.T) {
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, entry := range corpus.Expressions() {
		whole, err := e.Compile(t.Context(), entry.Text)
		require.NoError(t, err)
		for _, conjunct := range whole.Conjuncts() {
			part, err := e.Compile(t.Context(), conjunct.Text)
			require.NoError(t, err, conjunct.Text)
			again := part.Conjuncts()
			require.Len(t, again, 1)
			require.Equal(t, conjunct.Text, again[0].Text)
		}
	}
}
