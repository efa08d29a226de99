// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package randomexpr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

var all = randomexpr.Attributes{
	Domain: "d", Ints: []string{"x", "y"}, String: "s",
	Strings: "list", Version: "version", Bool: "flag", Capacity: "memory", Drivers: []string{"d", "e"},
}

// devices generates n devices that have all attributes, except that one in twelve devices has no x.
func devices(t *rapid.T, n int) []*device.Device {
	letter := rapid.SampledFrom([]string{"a", "b", "c"})
	result := make([]*device.Device, n)
	for i := range result {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"d/x":       {IntValue: new(rapid.Int64Range(0, 4).Draw(t, "x"))},
			"d/y":       {IntValue: new(rapid.Int64Range(0, 4).Draw(t, "y"))},
			"d/s":       {StringValue: new(letter.Draw(t, "s"))},
			"d/list":    {StringValues: rapid.SliceOfN(letter, 1, 2).Draw(t, "list")},
			"d/version": {VersionValue: new(fmt.Sprintf("1.%d.0", rapid.IntRange(0, 2).Draw(t, "version")))},
			"d/flag":    {BoolValue: new(rapid.Bool().Draw(t, "flag"))},
		}, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"d/memory": {Value: *resource.NewQuantity(rapid.Int64Range(1, 4).Draw(t, "memory")<<30, resource.BinarySI)},
		}}
		if rapid.IntRange(0, 11).Draw(t, "without x") == 11 {
			delete(d.Attributes, "d/x")
		}
		result[i] = device.New(rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(t, "driver"), d)
	}
	return result
}

// TestConditionsAreOfUse limits the number of expressions that don't compile, always fail or are always true, because such
// expressions test little.
func TestConditionsAreOfUse(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	var written, compiled, satisfied, refused, failed, telling int
	cases.CheckN(t, cases.Of(400, 2000), func(rt *rapid.T) {
		written++
		expression, err := environment.Compile(rt.Context(), randomexpr.Condition(rt, all))
		if err != nil {
			return
		}
		compiled++
		seen := map[bool]bool{}
		for range 10 {
			verdict, err := expression.Satisfied(t.Context(), devices(rt, rapid.IntRange(2, 4).Draw(rt, "size")), nil)
			switch {
			case err != nil:
				failed++
				continue
			case verdict:
				satisfied++
			default:
				refused++
			}
			seen[verdict] = true
		}
		if len(seen) == 2 {
			telling++
		}
	})
	t.Logf("%d written, %d compiled, %d tell sets apart; of all sets %d satisfied, %d refused, %d failed",
		written, compiled, telling, satisfied, refused, failed)
	sets := satisfied + refused + failed
	require.Greater(t, compiled, written*95/100)
	require.Greater(t, telling, written*38/100)
	require.Greater(t, satisfied, sets*15/100)
	require.Greater(t, refused, sets*30/100)
	require.Greater(t, failed, sets*3/100)
	require.Less(t, failed, sets*30/100)
}

// constructs are texts that the generator must produce: each must occur in some expression.
var constructs = []string{
	".all(a, ", ".exists(", ".exists_one(", ".existsOne(", ".filter(", ".map(", ".transformList(", "cel.bind(",
	".max()", ".min()", ".sum()", ".size()", ".distinct()", ".isSorted()", ".sort()", ".indexOf(", " in [", " in devices.map(",
	"sets.contains(", "sets.equivalent(", "sets.intersects(",
	" ? ", "!(", " || ", " % ", " / ", "-(", " * ", "-1",
	"devices[0]", "devices[devices.size() - 1]", "[q - 1]", "has(", ".orValue(", "' in ",
	".startsWith(", ".contains('ab')", ".split(", ".lowerAscii()", ".matches(",
	".compareTo(quantity(", ".isGreaterThan(", ".isLessThan(", "semver(", ".asInteger()",
	".list", ".flag", ".driver == ", ".allowMultipleAllocations", "devices.map(devices, ", "all(q, a, ", "all(r, s, ",
	".connected(", ".clique(", ".ring(", ".path(", ".paired(", ".box(", ".segments(", ".sameOrIncludes(",
	"math.abs(", "math.sign(", "math.greatest(", "math.least(", "math.bitAnd(", "math.bitOr(", "math.bitXor(", "math.bitNot(",
	"math.bitShiftLeft(", "math.bitShiftRight(", "math.ceil(", "math.floor(", "math.round(", "math.trunc(", "math.sqrt(",
	"math.isFinite(", "math.isNaN(", "math.isInf(",
}

func TestConditionsUseAllConstructs(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(2000, 10000), func(rt *rapid.T) {
		text := randomexpr.Condition(rt, all)
		for _, construct := range constructs {
			if strings.Contains(text, construct) {
				seen[construct]++
			}
		}
	})
	for _, construct := range constructs {
		require.NotZero(t, seen[construct], "the generator has lost %s", construct)
	}
}
