// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// shaped returns a class for the driver's devices with the given constraints.
func shaped(name string, constraints ...resourceapi.DeviceConfiguration) *resourceapi.DeviceClass {
	class := classOf(name)
	for _, c := range constraints {
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: c})
	}
	return class
}

// allOf returns all sets of count devices out of n, in order.
func allOf(n, count int) [][]int {
	var all [][]int
	var choose func(from int, chosen []int)
	choose = func(from int, chosen []int) {
		if len(chosen) == count {
			all = append(all, slices.Clone(chosen))
			return
		}
		for i := from; i < n; i++ {
			choose(i+1, append(chosen, i))
		}
	}
	choose(0, nil)
	return all
}

// The test counts the sets that remain for each possible set. KeepWhole must choose a set with the smallest loss.
func TestKeepWholeSameAsExhaustive(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	seen, improved, worse := 0, 0, 0
	kept := NewCache()
	cases.CheckN(t, preferenceCases(), func(rt *rapid.T) {
		seen++
		n := rapid.IntRange(2, 9).Draw(rt, "devices")
		devices := make([]resourceapi.Device, n)
		values := make([]*device.Device, n)
		inUse := make([]bool, n)
		s := scenario{fixture.Scenario{Options: []option{WithEnvironment(environment), WithCache(kept), WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithPreferenceBudget(1e8, 1e6)}}}
		for i := range devices {
			devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": rapid.IntRange(0, 8).Draw(rt, "index"), "row": i / 4})
			values[i] = device.New(driver, &devices[i])
			if inUse[i] = oneIn(rt, 4, "in use"); inUse[i] {
				s.InUse = append(s.InUse, devices[i].Name)
			}
		}
		s.Slices = []*sliceBuilder{slice("devices", devices...)}
		expressions := []string{inPairs, inArc, indices + ".max() - " + indices + ".min() <= 2", indices + ".sum() % 3 == 1", "devices.all(d, " + indexOfD + " < 5)", "devices[0].attributes['" + driver + "'].index > 3"}
		var shapes []Shape
		class := shaped("shapes")
		var texts []string
		for i := range rapid.IntRange(1, 5).Draw(rt, "shapes") {
			text := rapid.SampledFrom(expressions).Draw(rt, "constraint")
			name := fmt.Sprintf("c%d", i)
			class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: definitionOf(name, text)})
			texts = append(texts, text)
			shapes = append(shapes, Shape{Class: "shapes", Constraint: name, Count: rapid.IntRange(1, 5).Draw(rt, "count")})
		}
		s.Classes = []*resourceapi.DeviceClass{class}
		s.Options = append(s.Options, WithShapes(shapes))
		count := rapid.IntRange(1, 4).Draw(rt, "wanted")
		c := claim("c").Want("r", int64(count))
		own := ""
		if oneIn(rt, 2, "constrained") {
			own = rapid.SampledFrom(expressions).Draw(rt, "own")
			c.Cel("own").Define("own", own)
		}
		s.Claims = []*claimBuilder{c}

		satisfies := func(text string, set []int) bool {
			members := make([]*device.Device, len(set))
			for i, at := range set {
				members[i] = values[at]
			}
			expression, err := environment.Compile(rt.Context(), text)
			require.NoError(rt, err)
			satisfied, err := expression.Satisfied(t.Context(), members, cel.NewBudget(1e8))
			require.NoError(rt, err)
			return satisfied
		}
		isFree := func(set []int, taken ...int) bool {
			return !slices.ContainsFunc(set, func(i int) bool { return inUse[i] || slices.Contains(taken, i) })
		}
		// Shapes that have no set on the node don't count towards the limit of four shapes.
		var counted []int
		sets := map[int][][]int{}
		for i, shape := range shapes {
			for _, set := range allOf(n, shape.Count) {
				if satisfies(texts[i], set) {
					sets[i] = append(sets[i], set)
				}
			}
			if len(sets[i]) > 0 && len(counted) < 4 {
				counted = append(counted, i)
			}
		}
		slices.SortStableFunc(counted, func(a, b int) int { return shapes[b].Count - shapes[a].Count })
		left := func(taken ...int) []int {
			result := make([]int, len(counted))
			for k, i := range counted {
				for _, set := range sets[i] {
					if isFree(set, taken...) {
						result[k]++
					}
				}
			}
			return result
		}
		var best, first, bestLeft []int
		for _, set := range allOf(n, count) {
			if !isFree(set) || own != "" && !satisfies(own, set) {
				continue
			}
			if first == nil {
				first = set
			}
			if now := left(set...); best == nil || slices.Compare(now, bestLeft) > 0 {
				best, bestLeft = set, now
			}
		}
		var want []string
		for _, i := range best {
			want = append(want, "r="+devices[i].Name)
		}
		if !slices.Equal(best, first) {
			improved++
		}
		a := s.allocator(t)
		results, details, err := a.AllocateWithDetails(t.Context(), s.OnNode(), s.APIClaims())
		require.NoError(rt, err)
		if diff := cmp.Diff(want, devicesOf(results)); diff != "" {
			rt.Fatalf("brute force: %s\n%v %v\nshapes %+v %v\nleft %v\n%+v", diff, s.InUse, own, shapes, texts, bestLeft, details)
		}
		if want == nil {
			return
		}
		require.Equal(rt, PreferenceBest, details.Outcome)
		require.Len(rt, details.Preferences, 1)
		var losses []ShapeLoss
		for k, i := range counted {
			losses = append(losses, ShapeLoss{Shape: shapes[i], Lost: left()[k] - bestLeft[k], Left: bestLeft[k]})
		}
		if diff := cmp.Diff(losses, details.Preferences[0].Losses); len(losses) > 0 && diff != "" {
			rt.Fatalf("losses: %s", diff)
		}
		// PolicyValues returns the same value for a claim with these devices, and the right values for other devices.
		having := s.APIClaims()[0].DeepCopy()
		having.Status.Allocation = &results[0]
		told, err := a.PolicyValues(t.Context(), s.OnNode(), having)
		require.NoError(rt, err)
		require.Equal(rt, details.Preferences, told)
		others := slices.DeleteFunc(allOf(n, count), func(set []int) bool { return !isFree(set) })
		set := rapid.SampledFrom(others).Draw(rt, "has")
		for i := range set {
			having.Status.Allocation.Devices.Results[i].Device = devices[set[i]].Name
		}
		told, err = a.PolicyValues(t.Context(), s.OnNode(), having)
		require.NoError(rt, err)
		require.Len(rt, told, 1)
		losses = nil
		for k, i := range counted {
			losses = append(losses, ShapeLoss{Shape: shapes[i], Lost: left()[k] - left(set...)[k], Left: left(set...)[k]})
		}
		if diff := cmp.Diff(losses, told[0].Losses); len(losses) > 0 && diff != "" {
			rt.Fatalf("losses of %v: %s", set, diff)
		}
		if slices.Compare(left(set...), bestLeft) < 0 {
			worse++
		}
	})
	t.Logf("%d cases: better than the first %d, better than one that a claim has %d", seen, improved, worse)
	require.Greater(t, improved, seen/20)
	require.Greater(t, worse, seen/20)
}

// Nodes that differ only in attributes that shapes read can share a cache. Allocators with different shapes can share it, too.
func TestKeepWholeWithACache(t *testing.T) {
	kept := WithCache(NewCache())
	for range 2 {
		for _, test := range []struct{ option, indices, want string }{
			{"shape=pairs/pair/2", "0 1 4", "r=c"},
			{"shape=pairs/pair/2", "0 4 5", "r=a"},
			{"shape=pairs/far/2", "0 1 4", "r=b"},
			{"shape=pairs/far/2", "0 4 5", "r=c"},
			{"", "0 1 4", "r=a"},
		} {
			of := strings.Fields(test.indices)
			given(t, fmt.Sprintf(`class pairs; define pair = $pairs; define far = devices.all(d, devices.exists(o, o != d && ($at.index - o.attributes['mla.example.com'].index) %% 4 == 0))
device a index=%s; device b index=%s; device c index=%s; claim c; want r 1; option keep-whole %s`, of[0], of[1], of[2], test.option)).with(kept).requireDevices(t, test.want)
		}
	}
}

// Whatever is wrong with the shapes of other claims, KeepWhole never keeps a claim from being allocated.
func TestKeepWholeServesInAnyCase(t *testing.T) {
	for name, expression := range map[string]string{
		"fails":      "1 / (devices.size() - 2) == 1",
		"unread":     "devices.slice(0, 1).size() == 1",
		"no CEL":     "devices.",
		"no devices": "false",
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range [][]option{nil, {WithPreferenceBudget(0, 0)}, {WithAttemptBudget(NewAttemptBudget(Budget{Cost: 1_000_000}))}, {WithCache(NewCache())}} {
				given(t, "class bad; define bad = "+expression+"; devices 8 mla-# index=#; claim c; want r 2; option keep-whole shape=bad/bad/2 shape=gone/bad/2").
					with(opts...).requireDevices(t, "r=mla-0", "r=mla-1")
			}
		})
	}
}
