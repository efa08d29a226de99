// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

func (s scenario) count(t testing.TB, shape Shape) SetCount {
	t.Helper()
	counts, err := s.allocator(t).CountSets(t.Context(), []*v1.Node{s.onNode()}, shape)
	require.NoError(t, err)
	require.Len(t, counts, 1)
	return counts[0]
}

func TestCountSets(t *testing.T) {
	class := shaped("shapes", definitionOf("pair", inPairs), definitionOf("arc", inArc), definitionOf("any", "true"), definitionOf("wrong", "devices[0].attributes['none.example.com'].x == 1"))
	counters := func(amount string) func(*resourceapi.Device) {
		return func(d *resourceapi.Device) {
			d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "c", Counters: map[string]resourceapi.Counter{"m": {Value: resource.MustParse(amount)}}}}
		}
	}
	counted := func(amount string, devices ...resourceapi.Device) []*sliceBuilder {
		shared := slice("counters")
		shared.Spec.Pool.ResourceSliceCount = 2
		shared.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "c", Counters: map[string]resourceapi.Counter{"m": {Value: resource.MustParse(amount)}}}}
		with := slice("devices", devices...)
		with.Spec.Pool.ResourceSliceCount = 2
		return []*sliceBuilder{shared, with}
	}
	tainted := func(d *resourceapi.Device) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	}
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		inUse  []string
		shape  Shape
		want   SetCount
	}{
		"pairs":                    {shape: Shape{"shapes", "pair", 2}, want: SetCount{4, true}},
		"one pair is broken":       {shape: Shape{"shapes", "pair", 2}, inUse: []string{"mla-5"}, want: SetCount{3, true}},
		"arcs of three":            {shape: Shape{"shapes", "arc", 3}, want: SetCount{2, true}},
		"arcs around what is used": {shape: Shape{"shapes", "arc", 3}, inUse: []string{"mla-1"}, want: SetCount{2, true}},
		"arcs between":             {shape: Shape{"shapes", "arc", 3}, inUse: []string{"mla-1", "mla-5"}, want: SetCount{2, true}},
		"no arc of four":           {shape: Shape{"shapes", "arc", 4}, inUse: []string{"mla-1", "mla-5"}, want: SetCount{0, true}},
		"more than there are":      {shape: Shape{"shapes", "any", 9}, want: SetCount{0, true}},
		"what fails is unknown":    {shape: Shape{"shapes", "wrong", 2}, want: SetCount{0, false}},
		"no devices":               {slices: []*sliceBuilder{slice("s").onNode("other")}, shape: Shape{"shapes", "pair", 2}, want: SetCount{0, true}},
		"tainted":                  {slices: []*sliceBuilder{slice("s", newDevice("mla-0", attrs{"index": 0}), newDevice("mla-1", attrs{"index": 1}, tainted))}, shape: Shape{"shapes", "any", 1}, want: SetCount{1, true}},
		"counters": {
			// Any two of the devices may be had, and never three.
			slices: counted("2", newDevice("mla-0", nil, counters("1")), newDevice("mla-1", nil, counters("1")), newDevice("mla-2", nil, counters("1"))),
			shape:  Shape{"shapes", "any", 1}, want: SetCount{2, true},
		},
		"counters that are used": {
			slices: counted("2", newDevice("mla-0", nil, counters("1")), newDevice("mla-1", nil, counters("1")), newDevice("mla-2", nil, counters("2"))),
			inUse:  []string{"mla-0"}, shape: Shape{"shapes", "any", 1}, want: SetCount{1, true},
		},
		// 64 devices have 635,376 sets of four: not all are listed, those that are have the first devices,
		// and allocating one after the other finds the others.
		"more sets than are listed": {slices: []*sliceBuilder{slice("s", ring(64)...)}, shape: Shape{"shapes", "any", 4}, want: SetCount{16, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: test.slices, inUse: test.inUse, classes: []*resourceapi.DeviceClass{class}}
			if s.slices == nil {
				s.slices = eight()
			}
			require.Equal(t, test.want, s.count(t, test.shape))
		})
	}
}

func TestCountSetsOfNoClass(t *testing.T) {
	_, err := scenario{slices: eight()}.allocator(t).CountSets(t.Context(), []*v1.Node{newNode(nodeName)}, Shape{"none", "pair", 2})
	require.ErrorContains(t, err, "2 devices of class none with constraint pair, node node-1: ")
}

// A device that two nodes can use is counted once, and nothing stays in use.
func TestCountSetsForSeveralNodes(t *testing.T) {
	class := shaped("shapes", definitionOf("pair", inPairs), definitionOf("any", "true"))
	s := scenario{classes: []*resourceapi.DeviceClass{class}, slices: []*sliceBuilder{slice("s", ring(5)...).everywhere()}}
	a := s.allocator(t)
	nodes := []*v1.Node{newNode("a"), newNode("b")}
	for range 2 {
		counts, err := a.CountSets(t.Context(), nodes, Shape{"shapes", "pair", 2})
		require.NoError(t, err)
		require.Equal(t, []SetCount{{2, false}, {0, true}}, counts)
	}
	counts, err := a.CountSets(t.Context(), nodes[:1], Shape{"shapes", "any", 1})
	require.NoError(t, err)
	require.Equal(t, []SetCount{{5, true}}, counts)
}

func TestCountSetsEnds(t *testing.T) {
	class := shaped("shapes", definitionOf("pair", inPairs), definitionOf("sum", indices+".sum() % 7 == 3"))
	s := scenario{classes: []*resourceapi.DeviceClass{class}, slices: []*sliceBuilder{slice("s", ring(32)...)}, opts: []Option{WithAttemptBudget(NewAttemptBudget(10, 10))}}
	require.Equal(t, SetCount{}, s.count(t, Shape{"shapes", "sum", 8}))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.opts = nil
	_, err := s.allocator(t).CountSets(over, []*v1.Node{s.onNode()}, Shape{"shapes", "sum", 8})
	require.ErrorIs(t, err, over.Err())
}

func TestSetsOf(t *testing.T) {
	class := shaped("shapes", definitionOf("pair", inPairs))
	s := scenario{classes: []*resourceapi.DeviceClass{class}, slices: eight(), inUse: []string{"mla-0"}}
	found, all, err := s.allocator(t).SetsOf(t.Context(), s.onNode(), Shape{"shapes", "pair", 2})
	require.NoError(t, err)
	require.True(t, all)
	var names []string
	for _, set := range found {
		for _, id := range set {
			names = append(names, id.Device.String())
		}
	}
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3", "mla-4", "mla-5", "mla-6", "mla-7"}, names)
	require.Equal(t, structured.MakeDeviceID(driver, "pool-1", "mla-0"), found[0][0])
}

// mostDisjoint tries all ways.
func mostDisjoint(sets [][]int, taken map[int]bool) int {
	most := 0
	for i, set := range sets {
		if slices.ContainsFunc(set, func(p int) bool { return taken[p] }) {
			continue
		}
		for _, p := range set {
			taken[p] = true
		}
		most = max(most, 1+mostDisjoint(sets[i+1:], taken))
		for _, p := range set {
			delete(taken, p)
		}
	}
	return most
}

func TestCountSetsSameAsTryingAll(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	expressions := []string{inPairs, inArc, indices + ".max() - " + indices + ".min() <= 2", indices + ".sum() % 3 == 1"}
	severalSets := 0
	check := func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "devices")
		devices, values := make([]resourceapi.Device, n), make([]*device.Device, n)
		s := scenario{opts: []Option{WithEnvironment(environment)}}
		inUse := map[int]bool{}
		for i := range devices {
			devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": rapid.IntRange(0, 7).Draw(rt, "index")})
			values[i] = device.New(driver, &devices[i])
			if inUse[i] = oneIn(rt, 4, "in use"); inUse[i] {
				s.inUse = append(s.inUse, devices[i].Name)
			}
		}
		s.slices = []*sliceBuilder{slice("devices", devices...)}
		text := rapid.SampledFrom(expressions).Draw(rt, "constraint")
		expression, err := environment.Compile(rt.Context(), text)
		require.NoError(rt, err)
		count := rapid.IntRange(1, 4).Draw(rt, "count")
		s.classes = []*resourceapi.DeviceClass{shaped("shapes", definitionOf("c", text))}
		var sets [][]int
		for _, set := range allOf(n, count) {
			members := make([]*device.Device, len(set))
			for i, at := range set {
				members[i] = values[at]
			}
			satisfied, err := expression.Satisfied(t.Context(), members, cel.NewBudget(DefaultCostBudget))
			require.NoError(rt, err)
			if satisfied {
				sets = append(sets, set)
			}
		}
		want := mostDisjoint(sets, inUse)
		if want > 1 {
			severalSets++
		}
		require.Equal(rt, SetCount{want, true}, s.count(t, Shape{"shapes", "c", count}))
	}
	cases.Until(t, cases.Of(50, 1000), func() bool { return severalSets > 0 }, check)
}
