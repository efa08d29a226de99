// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

func environment(t testing.TB) *device.Environment {
	t.Helper()
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	return e
}

// drawPartial draws a partial set: it chooses some devices, excludes some, and leaves the remaining devices possible.
func drawPartial(t *rapid.T, s *sound) bound.Partial {
	p := s.partial(nil, nil)
	for i := range s.all {
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			if p.Left > 0 {
				p.Chosen.Add(i)
				p.Left--
			}
		case 1:
		default:
			p.Domain.Add(i)
		}
	}
	return p
}

func clone(p bound.Partial) bound.Partial {
	return bound.Partial{Chosen: slices.Clone(p.Chosen), Domain: slices.Clone(p.Domain), Left: p.Left}
}

// completions calls f for each completion of p that adds devices from index from on.
func completions(p bound.Partial, n, from int, f func(bitset.Set)) {
	if p.Left == 0 {
		f(p.Chosen)
		return
	}
	for i := from; i < n; i++ {
		if p.Domain.Has(i) {
			next := clone(p)
			next.Chosen.Add(i)
			next.Domain.Remove(i)
			next.Left--
			completions(next, n, i+1, f)
		}
	}
}

// statistics show that the generator still covers all cases. All fields except compiled count partial sets.
type statistics struct{ compiled, tried, understood, decided, infeasible int }

// perExpression is the number of partial sets for each expression. It is above one because compiling takes most of the time.
const perExpression = 2

// TestBoundsAreSound compares the bounds of random expressions and partial sets with the results of all completions.
func TestBoundsAreSound(t *testing.T) {
	var seen statistics
	cases.CheckN(t, cases.Of(2000, 10_000), soundness(t, &seen))
	t.Logf("%+v", seen)
	require.Greater(t, seen.understood, seen.tried/4)
	require.Greater(t, seen.decided, seen.tried/7)
	require.Greater(t, seen.infeasible, seen.tried/3)
}

func FuzzBoundsAreSound(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(soundness(f, &statistics{})))
}

func soundness(t testing.TB, statistics *statistics) func(*rapid.T) {
	return soundnessOf(t, statistics, func(rt *rapid.T) string { return randomexpr.Condition(rt, randomAttributes) })
}

// soundnessOf returns the property that bounds are sound, for the expressions that the function write generates.
func soundnessOf(t testing.TB, statistics *statistics, write func(*rapid.T) string) func(*rapid.T) {
	e := environment(t)
	return func(rt *rapid.T) {
		text := write(rt)
		expression, err := e.Compile(rt.Context(), text)
		if err != nil {
			return // a type error, say of min() over strings in arithmetic
		}
		statistics.compiled++
		size := rapid.IntRange(1, 4).Draw(rt, "size")
		analysis := bound.Analyze(expression, size)
		if rapid.Bool().Draw(rt, "ascending") {
			analysis = bound.AnalyzeAscending(expression, size)
		}
		for range rapid.IntRange(1, perExpression).Draw(rt, "sets") {
			statistics.tried++
			s := soundOf(formula{text, expression}, size, devices(rt, rapid.IntRange(size, 7).Draw(rt, "devices")))
			s.tables = analysis.Tabulate(slices.Concat(s.all, strangers))
			bounds, p := s.bounds(rt), drawPartial(rt, s)
			for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
				if infeasible, _ := s.check(rt, bounds, p, effort); infeasible {
					statistics.infeasible++
					break
				}
			}
			if analysis.Understood() {
				statistics.understood++
			}
			if p.Left <= p.Domain.Count() && bounds.Bound(p) != bound.Open {
				statistics.decided++
			}
		}
	}
}

// randomAttributes are the attributes of the random devices. x may be missing or a string, and list may be a string.
var randomAttributes = randomexpr.Attributes{
	Domain: "d", Ints: []string{"x", "y"}, String: "s",
	Strings: "list", Version: "version", Bool: "flag", Capacity: "memory", Drivers: []string{"d", "e"},
}

var letter = rapid.SampledFrom([]string{"a", "b", "c"})

// devices draws n random devices.
func devices(t *rapid.T, n int) []*device.Device {
	result := make([]*device.Device, n)
	for i := range result {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"d/y": {IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "y"))},
			"d/s": {StringValue: ptr.To(letter.Draw(t, "s"))},
		}}
		switch rapid.IntRange(0, 9).Draw(t, "x") {
		case 0: // missing
		case 1:
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{StringValue: ptr.To("x")}
		default:
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "x"))}
		}
		addRarelyRead(t, d)
		result[i] = device.New(rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(t, "driver"), d)
	}
	return result
}

func addRarelyRead(t *rapid.T, d *resourceapi.Device) {
	list := resourceapi.DeviceAttribute{StringValues: rapid.SliceOfN(letter, 1, 2).Draw(t, "list")}
	if rapid.IntRange(0, 11).Draw(t, "one string") == 11 {
		list = resourceapi.DeviceAttribute{StringValue: ptr.To("a")}
	}
	d.Attributes["d/list"] = list
	d.Attributes["d/version"] = resourceapi.DeviceAttribute{VersionValue: ptr.To(fmt.Sprintf("1.%d.0", rapid.IntRange(0, 2).Draw(t, "version")))}
	d.Attributes["d/flag"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(rapid.Bool().Draw(t, "flag"))}
	d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"d/memory": {Value: *resource.NewQuantity(rapid.Int64Range(1, 4).Draw(t, "memory")<<30, resource.BinarySI)},
	}
}

// line returns n devices. y is the index of the device, s alternates between two values, v is a version and l a list.
func line(n int) []*device.Device {
	result := make([]*device.Device, n)
	for i := range result {
		result[i] = device.New("d", sourceOf(i))
	}
	return result
}

// sourceOf returns the API object of the device at index i of line.
func sourceOf(i int) *resourceapi.Device {
	return &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"y": {IntValue: ptr.To(int64(i))},
		"s": {StringValue: ptr.To(string(rune('a' + i%2)))},
		"l": {IntValues: []int64{int64(i), int64(i + 5)}},
		"v": {VersionValue: ptr.To(fmt.Sprintf("1.%d.0", i/2))},
	}}
}

func of(n int, positions ...int) bitset.Set {
	result := bitset.New(n)
	for _, i := range positions {
		result.Add(i)
	}
	return result
}

// TestInfeasibleRemovesCandidates checks that Infeasible removes devices that no satisfying completion contains.
func TestInfeasibleRemovesCandidates(t *testing.T) {
	compiled, err := environment(t).Compile(t.Context(), "devices.map(d, d.attributes['d'].y).max() - devices.map(d, d.attributes['d'].y).min() == 2")
	require.NoError(t, err)
	tables := bound.Analyze(compiled, 3).Tabulate(line(70)).NewBounds(t.Context(), nil)
	p := bound.Partial{Chosen: of(70, 65), Domain: of(70, 0, 1, 63, 64, 66, 69), Left: 2}
	require.False(t, tables.Infeasible(p, bound.Thorough))
	require.Equal(t, of(70, 63, 64, 66), p.Domain)
	require.EqualValues(t, 70, len(line(70)))
	require.LessOrEqual(t, tables.Evaluations(), int64(2*70))

	p = bound.Partial{Chosen: of(70, 69), Domain: of(70, 0, 1, 63, 64, 66), Left: 2}
	require.True(t, tables.Infeasible(p, bound.Thorough))
}
