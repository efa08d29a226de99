// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/objective"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
)

func (s scenario) count(t testing.TB, shape Shape) SetCount {
	t.Helper()
	counts, err := s.allocator(t).CountSets(t.Context(), []*v1.Node{s.OnNode()}, shape)
	require.NoError(t, err)
	require.Len(t, counts, 1)
	return counts[0]
}

func TestCountSetsOfNoClass(t *testing.T) {
	_, err := given(t, "devices 8 mla-# index=#").allocator(t).CountSets(t.Context(), []*v1.Node{newNode(nodeName)}, Shape{Class: "none", Constraint: "pair", Count: 2})
	require.ErrorContains(t, err, "2 devices of class none with constraint pair, node node-1: ")
}

// A device that two nodes can use is counted for one node only. Counting sets does not allocate their devices.
func TestCountSetsForSeveralNodes(t *testing.T) {
	a := given(t, "class shapes; define pair = $pairs; define any = true; slice s everywhere; devices 5 mla-# index=#").allocator(t)
	nodes := []*v1.Node{newNode("a"), newNode("b")}
	for range 2 {
		counts, err := a.CountSets(t.Context(), nodes, Shape{Class: "shapes", Constraint: "pair", Count: 2})
		require.NoError(t, err)
		require.Equal(t, []SetCount{{Sets: 2}, {IsMost: true}}, counts)
	}
	counts, err := a.CountSets(t.Context(), nodes[:1], Shape{Class: "shapes", Constraint: "any", Count: 1})
	require.NoError(t, err)
	require.Equal(t, []SetCount{{Sets: 5, IsMost: true}}, counts)
}

func TestCountSetsEnds(t *testing.T) {
	s := given(t, "class shapes; define sum = $indices.sum() % 7 == 3; devices 32 mla-# index=#")
	require.Equal(t, SetCount{}, s.with(WithAttemptBudget(NewAttemptBudget(Budget{Cost: 10, Steps: 10}))).count(t, Shape{Class: "shapes", Constraint: "sum", Count: 8}))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.allocator(t).CountSets(over, []*v1.Node{s.OnNode()}, Shape{Class: "shapes", Constraint: "sum", Count: 8})
	require.ErrorIs(t, err, over.Err())
}

// The list of sets also contains sets with devices in use.
func TestListedSets(t *testing.T) {
	s := given(t, "class shapes; define pair = $pairs; devices 8 mla-# index=#; allocated mla-0")
	a := s.allocator(t)
	has, err := a.planner.InventoryOf(s.OnNode())
	require.NoError(t, err)
	found, err := objective.ListedSets(t.Context(), a.planner, s.OnNode(), has, Shape{Class: "shapes", Constraint: "pair", Count: 2})
	require.NoError(t, err)
	require.True(t, found.All)
	require.Equal(t, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, found.Positions())
}

// mostDisjoint returns the maximum number of disjoint sets without taken devices. It tries all combinations.
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
		s := scenario{fixture.Scenario{Options: []option{WithEnvironment(environment)}}}
		inUse := map[int]bool{}
		for i := range devices {
			devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": rapid.IntRange(0, 7).Draw(rt, "index")})
			values[i] = device.New(driver, &devices[i])
			if inUse[i] = oneIn(rt, 4, "in use"); inUse[i] {
				s.InUse = append(s.InUse, devices[i].Name)
			}
		}
		s.Slices = []*sliceBuilder{slice("devices", devices...)}
		text := rapid.SampledFrom(expressions).Draw(rt, "constraint")
		expression, err := environment.Compile(rt.Context(), text)
		require.NoError(rt, err)
		count := rapid.IntRange(1, 4).Draw(rt, "count")
		s.Classes = []*resourceapi.DeviceClass{shaped("shapes", definitionOf("c", text))}
		var sets [][]int
		for _, set := range allOf(n, count) {
			members := make([]*device.Device, len(set))
			for i, at := range set {
				members[i] = values[at]
			}
			satisfied, err := expression.Satisfied(t.Context(), members, cel.NewBudget(1e8))
			require.NoError(rt, err)
			if satisfied {
				sets = append(sets, set)
			}
		}
		want := mostDisjoint(sets, inUse)
		if want > 1 {
			severalSets++
		}
		require.Equal(rt, SetCount{Sets: want, IsMost: true}, s.count(t, Shape{Class: "shapes", Constraint: "c", Count: count}))
	}
	cases.Until(t, cases.Of(50, 1000), func() bool { return severalSets > 0 }, check)
}

// layout determines which devices of a machine are in use.
type layout struct {
	name  string
	inUse func(i int) bool
}

func layouts() []layout {
	result := []layout{
		{"empty", func(int) bool { return false }},
		{"every eighth in use", func(i int) bool { return i%8 == 3 }},
		{"every second in use", func(i int) bool { return i%2 == 1 }},
	}
	for _, percent := range []int{25, 50, 70} {
		random := rand.New(rand.NewPCG(1, uint64(percent)))
		inUse := make([]bool, 128)
		for i := range inUse {
			inUse[i] = random.IntN(100) < percent
		}
		result = append(result, layout{fmt.Sprintf("%d %% in use", percent), func(i int) bool { return inUse[i] }})
	}
	return result
}

// asking returns the scenario of a claim with the expression, on the expression's machine with the devices of l in use.
func asking(e corpus.Expression, l layout) scenario {
	s := scenario{fixture.Scenario{Options: []option{WithCostBudget(5_000_000), WithStepBudget(100_000)}}}
	wanted := claim("c")
	for i, r := range e.Requests {
		wanted.Want(fmt.Sprint("r", i), int64(r.Count)).Class(r.Driver)
	}
	s.Claims = []*claimBuilder{wanted.Define("a", e.Text).Cel("a")}
	free := map[string][]resourceapi.Device{}
	for i, d := range e.Hardware.Devices() {
		if !l.inUse(i) {
			free[d.Driver] = append(free[d.Driver], d.Device)
		}
	}
	for _, driver := range e.Hardware.Drivers() {
		s.Classes = append(s.Classes, classOf(driver))
		s.Classes[len(s.Classes)-1].Spec.Selectors = celSelectors([]string{"device.driver == '" + driver + "'"})
		s.Slices = append(s.Slices, slice(driver, free[driver]...).Driver(driver))
	}
	return s
}

// unanswered maps expressions whose search may exhaust its budget to the reason.
var unanswered = map[string]string{
	"rack: differences of neighbours": "values of neighbours in the order of the set, in a list",
}

// For expressions that users write for real machines, the search ends within the plugin's default budgets. The cache is empty,
// and different devices are in use.
func TestAskedIsAnswered(t *testing.T) {
	steps := make(map[string]int64)
	for i, e := range corpus.Asked() {
		t.Run(e.Name, func(t *testing.T) {
			for j, l := range layouts() {
				if !cases.Nightly() && (i+j)%3 != 0 {
					continue // the race detector turns ten seconds into ninety
				}
				s := asking(e, l)
				a := s.allocator(t)
				_, err := a.Allocate(t.Context(), newNode(nodeName), s.APIClaims())
				if _, not := unanswered[e.Name]; !not {
					require.NoError(t, err, "%s\n%s", l.name, e.Text)
				}
				steps[e.Name] = max(steps[e.Name], a.Stats().Steps)
			}
		})
	}
	long := 0
	for _, n := range steps {
		if n > 100 {
			long++
		}
	}
	t.Logf("%d expressions, %d of them take more than 100 steps in some layout", len(steps), long)
	require.LessOrEqual(t, long, 8)
}

func TestMostAsked(t *testing.T) {
	pair, block, other := Shape{Class: "a", Constraint: "pair", Count: 2}, Shape{Class: "a", Constraint: "block", Count: 8}, Shape{Class: "b", Constraint: "pair", Count: 2}
	require.Equal(t, []Shape{pair, block, other}, MostAsked(map[Shape]int{other: 1, block: 1, pair: 4}))
	require.Equal(t, []Shape{block, other, pair}, MostAsked(map[Shape]int{other: 2, block: 3, pair: 1}), "two or three times is as often")
	many := map[Shape]int{other: 1}
	for i := range 2 * MaxShapesOfClass {
		many[Shape{Class: "a", Constraint: "pair", Count: i + 2}] = 1
	}
	most := MostAsked(many)
	require.Len(t, most, MaxShapesOfClass+1)
	require.Equal(t, Shape{Class: "a", Constraint: "pair", Count: 2*MaxShapesOfClass + 1}, most[0])
	require.Equal(t, "breaks 1 of 4 sets of 2 (constraint pair of class a), 0 of 0 sets of 8 (constraint block of class a)",
		PreferenceValue{Value: -1, Losses: []ShapeLoss{{Shape: pair, Lost: 1, Left: 3}, {Shape: block}}}.String())
	require.Equal(t, "-7", PreferenceValue{Value: -7}.String())
}
