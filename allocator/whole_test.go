// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

const (
	// pairs are mla-0 and mla-1, mla-2 and mla-3, and so on; arcs are neighbours on a ring of eight.
	inPairs = "devices.all(d, devices.exists(o, o != d && " + indexOfD + " / 2 == o.attributes['" + driver + "'].index / 2))"
	inArc   = "devices.filter(d, devices.exists(o, (o.attributes['" + driver + "'].index + 1) % 8 == " + indexOfD + ")).size() == devices.size() - 1"
)

// shaped is a class of the driver's devices with constraints.
func shaped(name string, constraints ...resourceapi.DeviceConfiguration) *resourceapi.DeviceClass {
	class := classOf(name)
	for _, c := range constraints {
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: c})
	}
	return class
}

// keepingWhole is the policy as a configuration.
func keepingWhole() resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     v1alpha1.DriverName,
		Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDevicePreference","name":"whole","policy":"KeepWhole"}`)},
	}}
}

func TestKeepWhole(t *testing.T) {
	pairs, arcs := shaped("pairs", definitionOf("pair", inPairs)), shaped("arcs", definitionOf("arc", inArc))
	for name, test := range map[string]struct {
		class  *resourceapi.DeviceClass
		claim  *claimBuilder
		inUse  []string
		shapes []Shape
		want   []string
	}{
		"one of a broken pair": {
			class: pairs, claim: claim("c").want("r", 1), inUse: []string{"mla-4"}, want: []string{"r=mla-5"},
		},
		"the first if all are whole": {
			class: pairs, claim: claim("c").want("r", 1), want: []string{"r=mla-0"},
		},
		"two of broken pairs": {
			class: pairs, claim: claim("c").want("r", 2), inUse: []string{"mla-2", "mla-7"}, want: []string{"r=mla-3", "r=mla-6"},
		},
		"two of one pair and not of two": {
			class: pairs, claim: claim("c").want("r", 3), inUse: []string{"mla-6"}, want: []string{"r=mla-0", "r=mla-1", "r=mla-7"},
		},
		"at the end of an arc": {
			class: arcs, claim: claim("c").want("r", 1), inUse: []string{"mla-3", "mla-7"},
			shapes: []Shape{{"arcs", "arc", 3}}, want: []string{"r=mla-0"},
		},
		"in the shorter arc": {
			class: arcs, claim: claim("c").want("r", 1), inUse: []string{"mla-0", "mla-5"},
			shapes: []Shape{{"arcs", "arc", 4}}, want: []string{"r=mla-6"},
		},
		"the most devices first": {
			// The arc of four is kept, and both pairs of the others are broken for it.
			class: arcs, claim: claim("c").want("r", 2), inUse: []string{"mla-0", "mla-5"},
			shapes: []Shape{{"arcs", "arc", 2}, {"arcs", "arc", 4}}, want: []string{"r=mla-6", "r=mla-7"},
		},
		"nobody asks for what the node has": {
			class: arcs, claim: claim("c").want("r", 1), inUse: []string{"mla-0"},
			shapes: []Shape{{"arcs", "none", 2}, {"none", "arc", 2}, {"arcs", "arc", 9}}, want: []string{"r=mla-1"},
		},
		"a set that has to satisfy a constraint": {
			class: arcs, claim: claim("c").want("r", 2).cel("two").define("two", inArc), inUse: []string{"mla-5"},
			shapes: []Shape{{"arcs", "arc", 4}}, want: []string{"r=mla-3", "r=mla-4"},
		},
		"nothing to choose": {
			class: pairs, claim: claim("c").wantAll("r"), want: []string{"r=mla-0", "r=mla-1", "r=mla-2", "r=mla-3", "r=mla-4", "r=mla-5", "r=mla-6", "r=mla-7"},
		},
		"admin access takes nothing": {
			class: pairs, claim: claim("c").want("r", 1).admin(), inUse: []string{"mla-0"}, want: []string{"r=mla-0"},
		},
		"together": {
			class: pairs, claim: claim("c").want("r", 1).want("s", 1), inUse: []string{"mla-2"}, want: []string{"r=mla-0", "s=mla-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			claims := []*claimBuilder{test.claim}
			shapes := test.shapes
			if shapes == nil {
				shapes = []Shape{{test.class.Name, "pair", 2}}
			}
			s := scenario{slices: eight(), classes: []*resourceapi.DeviceClass{test.class}, claims: claims, inUse: test.inUse}
			for _, opts := range [][]Option{nil, {WithExhaustiveSearch()}, {WithCache(NewCache())}} {
				s.opts = append(opts, WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithShapes(shapes))
				s.requireDevices(t, test.want...)
				s.requireDevices(t, test.want...)
			}
		})
	}
}

// allOf are all sets of so many of n, in order.
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

// The search is compared with one that counts the sets that are left, for each set that would do.
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
		s := scenario{opts: []Option{WithEnvironment(environment), WithCache(kept), WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithPreferenceBudget(DefaultCostBudget, DefaultStepBudget)}}
		for i := range devices {
			devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": rapid.IntRange(0, 8).Draw(rt, "index"), "row": i / 4})
			values[i] = device.New(driver, &devices[i])
			if inUse[i] = oneIn(rt, 4, "in use"); inUse[i] {
				s.inUse = append(s.inUse, devices[i].Name)
			}
		}
		s.slices = []*sliceBuilder{slice("devices", devices...)}
		expressions := []string{inPairs, inArc, indices + ".max() - " + indices + ".min() <= 2", indices + ".sum() % 3 == 1", "devices.all(d, " + indexOfD + " < 5)", "devices[0].attributes['" + driver + "'].index > 3"}
		var shapes []Shape
		class := shaped("shapes")
		var texts []string
		for i := range rapid.IntRange(1, 5).Draw(rt, "shapes") {
			text := rapid.SampledFrom(expressions).Draw(rt, "constraint")
			name := fmt.Sprintf("c%d", i)
			class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: definitionOf(name, text)})
			texts = append(texts, text)
			shapes = append(shapes, Shape{"shapes", name, rapid.IntRange(1, 5).Draw(rt, "count")})
		}
		s.classes = []*resourceapi.DeviceClass{class}
		s.opts = append(s.opts, WithShapes(shapes))
		count := rapid.IntRange(1, 4).Draw(rt, "wanted")
		c := claim("c").want("r", int64(count))
		own := ""
		if oneIn(rt, 2, "constrained") {
			own = rapid.SampledFrom(expressions).Draw(rt, "own")
			c.cel("own").define("own", own)
		}
		s.claims = []*claimBuilder{c}

		satisfies := func(text string, set []int) bool {
			members := make([]*device.Device, len(set))
			for i, at := range set {
				members[i] = values[at]
			}
			expression, err := environment.Compile(rt.Context(), text)
			require.NoError(rt, err)
			satisfied, err := expression.Satisfied(t.Context(), members, cel.NewBudget(DefaultCostBudget))
			require.NoError(rt, err)
			return satisfied
		}
		isFree := func(set []int, taken ...int) bool {
			return !slices.ContainsFunc(set, func(i int) bool { return inUse[i] || slices.Contains(taken, i) })
		}
		// What the node has none of does not count among the four.
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
		results, details, err := a.AllocateWithDetails(t.Context(), s.onNode(), s.apiClaims())
		require.NoError(rt, err)
		if diff := cmp.Diff(want, devicesOf(results)); diff != "" {
			rt.Fatalf("brute force: %s\n%v %v\nshapes %+v %v\nleft %v\n%+v", diff, s.inUse, own, shapes, texts, bestLeft, details)
		}
		if want == nil {
			return
		}
		require.Equal(rt, PreferenceBest, details.Outcome)
		require.Len(rt, details.Preferences, 1)
		var losses []ShapeLoss
		for k, i := range counted {
			losses = append(losses, ShapeLoss{shapes[i], left()[k] - bestLeft[k], bestLeft[k]})
		}
		if diff := cmp.Diff(losses, details.Preferences[0].Losses); len(losses) > 0 && diff != "" {
			rt.Fatalf("losses: %s", diff)
		}
		// The same is told of a claim that has these devices, and of one that has others.
		having := s.apiClaims()[0].DeepCopy()
		having.Status.Allocation = &results[0]
		told, err := a.PolicyValues(t.Context(), s.onNode(), having)
		require.NoError(rt, err)
		require.Equal(rt, details.Preferences, told)
		others := slices.DeleteFunc(allOf(n, count), func(set []int) bool { return !isFree(set) })
		set := rapid.SampledFrom(others).Draw(rt, "has")
		for i := range set {
			having.Status.Allocation.Devices.Results[i].Device = devices[set[i]].Name
		}
		told, err = a.PolicyValues(t.Context(), s.onNode(), having)
		require.NoError(rt, err)
		require.Len(rt, told, 1)
		losses = nil
		for k, i := range counted {
			losses = append(losses, ShapeLoss{shapes[i], left()[k] - left(set...)[k], left(set...)[k]})
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

// A class may have the policy; it is about each request of the class alone.
func TestKeepWholeOfClasses(t *testing.T) {
	pairs := shaped("pairs", definitionOf("pair", inPairs), keepingWhole())
	s := scenario{
		slices: eight(), classes: []*resourceapi.DeviceClass{pairs}, inUse: []string{"mla-2", "mla-7"},
		claims: []*claimBuilder{claim("c").want("r", 1).class("pairs").want("s", 1).want("t", 1).class("pairs")},
	}
	s.requireDevices(t, "r=mla-3", "s=mla-0", "t=mla-6")
	// A preference of the claim for one of the requests comes first, and is the only one for it.
	s.claims = []*claimBuilder{claim("c").want("r", 1).class("pairs").want("s", 1).class("pairs").prefer("p", "-"+sum, "s")}
	s.requireDevices(t, "r=mla-3", "s=mla-0")
	// The default is for what nobody else has a preference for.
	s.opts = []Option{WithDefaultPreference(v1alpha1.PolicyKeepWhole)}
	s.claims = []*claimBuilder{claim("c").want("r", 1).want("s", 1).prefer("p", sum, "s")}
	details := s.details(t)
	require.Equal(t, []string{"p", "default"}, []string{details.Preferences[0].Name, details.Preferences[1].Name})
	require.Nil(t, details.Preferences[0].Losses)
	// Nobody has asked for pairs, and no class of the claim has a constraint: there is nothing to keep.
	require.Empty(t, details.Preferences[1].Losses)
}

func (s scenario) details(t *testing.T) Details {
	t.Helper()
	_, details, err := s.allocator(t).AllocateWithDetails(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	return details
}

// Where nobody has asked for anything, the usual counts are looked at.
func TestKeepWholeWithoutShapes(t *testing.T) {
	pairs := shaped("pairs", definitionOf("pair", inPairs), keepingWhole())
	s := scenario{
		slices: eight(), classes: []*resourceapi.DeviceClass{pairs}, inUse: []string{"mla-2"},
		claims: []*claimBuilder{claim("c").want("r", 1).class("pairs")},
	}
	require.Equal(t, []ShapeLoss{
		{Shape{"pairs", "pair", 4}, 0, 3},
		{Shape{"pairs", "pair", 2}, 0, 3},
	}, s.details(t).Preferences[0].Losses[1:])
	s.inUse = nil
	require.Equal(t, []ShapeLoss{
		{Shape{"pairs", "pair", 8}, 1, 0},
		{Shape{"pairs", "pair", 4}, 3, 3},
		{Shape{"pairs", "pair", 2}, 1, 3},
	}, s.details(t).Preferences[0].Losses)
}

// A partition is kept whole too: taking a part of a device breaks the whole device.
func TestKeepWholeOfPartitions(t *testing.T) {
	var devices []resourceapi.Device
	for i := range 2 {
		gpu := fmt.Sprintf("gpu-%d", i)
		for half := range 2 {
			part := newDevice(fmt.Sprintf("%s-half-%d", gpu, half), attrs{"size": 1})
			consuming(gpu, amounts{"memory": "1"})(&part)
			devices = append(devices, part)
		}
		whole := newDevice(gpu, attrs{"size": 2})
		consuming(gpu, amounts{"memory": "2"})(&whole)
		devices = append(devices, whole)
	}
	wholes := shaped("wholes", definitionOf("whole", "devices.all(d, d.attributes['"+driver+"'].size == 2)"))
	s := scenario{
		slices: []*sliceBuilder{
			slice("devices", devices...).pool("pool-1", 1, 2),
			providing("counters", map[string]amounts{"gpu-0": {"memory": "2"}, "gpu-1": {"memory": "2"}}),
		},
		classes: []*resourceapi.DeviceClass{wholes},
		claims:  []*claimBuilder{claim("c").want("r", 1, "device.attributes['"+driver+"'].size == 1")},
		opts:    []Option{WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithShapes([]Shape{{"wholes", "whole", 1}})},
	}
	s.requireDevices(t, "r=gpu-0-half-0")
	s.inUse = []string{"gpu-1-half-1"}
	s.requireDevices(t, "r=gpu-1-half-0")
	s.opts = append(s.opts, WithExhaustiveSearch())
	s.requireDevices(t, "r=gpu-1-half-0")
}

// A cache is shared by nodes that differ in what only the shapes read, and by allocators that know of
// other shapes.
func TestKeepWholeWithACache(t *testing.T) {
	pairs := shaped("pairs", definitionOf("pair", inPairs), definitionOf("far", "devices.all(d, devices.exists(o, o != d && ("+indexOfD+" - o.attributes['"+driver+"'].index) % 4 == 0))"))
	kept := WithCache(NewCache())
	nodeWith := func(shapes []Shape, indices ...int) scenario {
		devices := make([]resourceapi.Device, len(indices))
		for i, index := range indices {
			devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": index})
		}
		return scenario{
			slices: []*sliceBuilder{slice("devices", devices...)}, classes: []*resourceapi.DeviceClass{pairs},
			claims: []*claimBuilder{claim("c").want("r", 1)},
			opts:   []Option{kept, WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithShapes(shapes)},
		}
	}
	pair, far := []Shape{{"pairs", "pair", 2}}, []Shape{{"pairs", "far", 2}}
	for range 2 {
		nodeWith(pair, 0, 1, 4).requireDevices(t, "r=mla-2")
		nodeWith(pair, 0, 4, 5).requireDevices(t, "r=mla-0")
		nodeWith(far, 0, 1, 4).requireDevices(t, "r=mla-1")
		nodeWith(far, 0, 4, 5).requireDevices(t, "r=mla-2")
		nodeWith(nil, 0, 1, 4).requireDevices(t, "r=mla-0")
	}
}

// A step counts what is left of all sets, and so takes longer than others.
func TestStepsOfKeepWholeCountAsEight(t *testing.T) {
	for steps, want := range map[int64]string{7: "r=mla-0", 80: "r=mla-5"} {
		s := scenario{
			slices: eight(), inUse: []string{"mla-4"}, claims: []*claimBuilder{claim("c").want("r", 1)},
			classes: []*resourceapi.DeviceClass{shaped("pairs", definitionOf("pair", inPairs))},
			opts: []Option{
				WithPreferenceBudget(1_000_000, steps), WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithShapes([]Shape{{"pairs", "pair", 2}}),
			},
		}
		a := s.allocator(t)
		results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.NoError(t, err)
		require.Equal(t, []string{want}, devicesOf(results), steps)
	}
}

// What others may ask for keeps nobody from being served, whatever the classes say.
func TestKeepWholeServesInAnyCase(t *testing.T) {
	for name, expression := range map[string]string{
		"fails":      "1 / (devices.size() - 2) == 1",
		"unread":     "devices.slice(0, 1).size() == 1",
		"no CEL":     "devices.",
		"no devices": "false",
	} {
		t.Run(name, func(t *testing.T) {
			class := shaped("bad", definitionOf("bad", expression))
			for _, opts := range [][]Option{nil, {WithPreferenceBudget(0, 0)}, {WithAttemptBudget(NewAttemptBudget(1_000_000, 0))}, {WithCache(NewCache())}} {
				s := scenario{
					slices: eight(), classes: []*resourceapi.DeviceClass{class}, claims: []*claimBuilder{claim("c").want("r", 2)},
					opts: append(opts, WithDefaultPreference(v1alpha1.PolicyKeepWhole), WithShapes([]Shape{{"bad", "bad", 2}, {"gone", "bad", 2}})),
				}
				s.requireDevices(t, "r=mla-0", "r=mla-1")
			}
		})
	}
}
