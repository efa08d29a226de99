// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/internal/testing/cases"
)

// response is the result of an Allocate call, without share IDs, which are random.
type response struct {
	Results []resourceapi.AllocationResult
	Err     string
	// onNode is true if the error only means that the claims don't fit on the node.
	onNode bool
}

// withoutReason removes the text why the claims don't fit. A search that has examined more devices can give a better reason.
func (a response) withoutReason() response {
	if a.onNode {
		a.Err = ""
	}
	return a
}

func (s scenario) answer(t testing.TB, opts ...option) (response, Stats) {
	t.Helper()
	s.Options = append(opts, WithReasons())
	a := s.allocator(t)
	return answerOf(a.Allocate(t.Context(), s.OnNode(), s.APIClaims())), a.Stats()
}

func answerOf(results []resourceapi.AllocationResult, err error) response {
	for _, result := range results {
		for i := range result.Devices.Results {
			result.Devices.Results[i].ShareID = nil
		}
	}
	if err != nil {
		return response{Err: err.Error(), onNode: errors.Is(err, structured.ErrFailedAllocationOnNode)}
	}
	return response{Results: results}
}

// A search with bounds returns the same devices and the same error texts as a search without bounds. Only the number of steps
// and the reason why claims don't fit may differ.
func TestBoundsChangeNothing(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(200, 1000), func(rt *rapid.T) {
		s := randomScenario(rt)
		want, all := s.answer(t, WithExhaustiveSearch())
		got, some := s.answer(t)
		require.Empty(rt, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})))
		require.LessOrEqual(rt, some.Evaluations+some.CacheHits, all.Evaluations)
		require.LessOrEqual(rt, some.Steps, all.Steps)
		switch {
		case want.Results == nil && some.Steps < all.Steps:
			seen["cut, not found"]++
		case want.Results == nil:
			seen["not found"]++
		case some.Steps < all.Steps:
			seen["cut, found nevertheless"]++
		default:
			seen["found"]++
		}
	})
	for _, outcome := range []string{"cut, not found", "not found", "found"} {
		require.NotZero(t, seen[outcome], "the generator has lost %q: %v", outcome, seen)
	}
}

// The search must not cut branches if the pattern's relation fails for some completion, because Allocate returns that error.
func TestPatternsThatFail(t *testing.T) {
	const chain = "devices.exists(a, devices.exists(b, devices.exists(c, $a.next == $b.index && $b.next == $c.index)))"
	for name, text := range map[string]string{
		"conditional": "((chain) ? devices.all(d, $d.index > 5) : devices.all(d, $d.index > 6))",
		"number":      "((chain) ? 1 : 2) == 3",
	} {
		t.Run(name, func(t *testing.T) {
			text = strings.ReplaceAll(text, "chain", chain)
			for _, variable := range []string{"a", "b", "c", "d"} {
				text = strings.ReplaceAll(text, "$"+variable, variable+".attributes['mla.example.com']")
			}
			var devices []resourceapi.Device
			for i := range 3 {
				devices = append(devices, newDevice(fmt.Sprint("mla-", i), attrs{"index": i, "next": (i + 1) % 3}))
			}
			devices = append(devices, newDevice("mla-3", attrs{"index": 3}))
			s := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", devices...)}, Claims: []*claimBuilder{claim("c").Want("x", 3).Cel("odd").Define("odd", text)}}}
			got, _ := s.answer(t)
			require.Contains(t, got.Err, "no such key")
			s.requireRight(t, got)
		})
	}
}

// Requests in groups that must match get the same devices with and without bounds. The node has barely enough devices.
func TestBoundsOfMatchingSetsChangeNothing(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(100, 500), func(rt *rapid.T) {
		s := randomMatching(rt)
		want, all := s.answer(t, WithExhaustiveSearch())
		got, some := s.answer(t)
		require.Empty(rt, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})))
		require.LessOrEqual(rt, some.Steps, all.Steps)
		switch {
		case want.Results != nil:
			seen["found"]++
		case some.Steps < all.Steps:
			seen["cut"]++
		}
	})
	require.NotZero(t, seen["found"], "%v", seen)
	require.NotZero(t, seen["cut"], "%v", seen)
}

// randomMatching draws GPUs and NICs on few PCIe roots, and requests for one or two of them on equal or different roots.
func randomMatching(t *rapid.T) scenario {
	s := scenario{}
	lists := oneIn(t, 3, "list attributes")
	if lists {
		s.Features = listsOn
	}
	devices := make([]resourceapi.Device, rapid.IntRange(3, 8).Draw(t, "devices"))
	for i := range devices {
		root := any(rapid.IntRange(0, 3).Draw(t, "root"))
		if lists && oneIn(t, 3, "several roots") {
			root = []int64{int64(root.(int)), rapid.Int64Range(0, 3).Draw(t, "other root")}
		}
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"root": root, "kind": rapid.SampledFrom([]string{"gpu", "nic"}).Draw(t, "kind")})
		if oneIn(t, 8, "shared") {
			shared(&devices[i])
		}
	}
	s.Slices = []*sliceBuilder{slice("1", devices...)}
	c := claim("c")
	n := rapid.IntRange(2, 6).Draw(t, "requests")
	for i := range n {
		c.Want(fmt.Sprintf("x-%d", i), rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 0}).Draw(t, "count"), rapid.SampledFrom([][]string{
			{kind("gpu")}, {kind("gpu")}, {kind("nic")}, {kind("nic")}, nil,
		}).Draw(t, "selectors")...)
		if oneIn(t, 12, "admin") {
			c.Admin()
		}
	}
	for range rapid.IntRange(1, 4).Draw(t, "constraints") {
		add := rapid.SampledFrom([]func(string, ...string) *claimBuilder{c.Match, c.Match, c.Match, c.Distinct}).Draw(t, "constraint")
		covered := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, 3, rapid.ID).Draw(t, "covered")
		var names []string
		for _, i := range covered {
			names = append(names, fmt.Sprintf("x-%d", i))
		}
		add(driver+"/root", names...)
	}
	s.Claims = []*claimBuilder{c}
	return s
}

// A bitset consists of words of 64 bits. Pruning must be right for devices on both sides of a word boundary.
func TestPruningOfManyDevices(t *testing.T) {
	for _, n := range []int{63, 64, 65, 70, 130} {
		for name, c := range map[string]*claimBuilder{
			"last two":     claim("c").Want("x", 2).Cel("far").Define("far", fmt.Sprintf("%s.min() >= %d", indices, n-2)),
			"two requests": claim("c").Want("x", 1, index+" > 60").Want("y", 2).Cel("far").Define("far", fmt.Sprintf("%s.sum() == %d && %s.min() > 0", indices, n+2, indices)),
			"a row":        claim("c").Want("x", 3).Cel("row").Define("row", inARow+fmt.Sprintf(" && devices.exists(d, d.attributes['mla.example.com'].index == %d)", n-2)),
			"far apart":    claim("c").Want("x", 2).Cel("far").Define("far", fmt.Sprintf("%s == %d", width("index"), n-2)),
			"never":        claim("c").Want("x", 2).Cel("far").Define("far", fmt.Sprintf("%s.min() >= %d", indices, n-1)),
		} {
			t.Run(fmt.Sprintf("%d, %s", n, name), func(t *testing.T) {
				s := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", ring(n)...)}, InUse: []string{"mla-0", "mla-62"}, Claims: []*claimBuilder{c}}}
				if name != "a row" { // there are too many sets to try
					want, _ := s.answer(t, WithExhaustiveSearch(), WithCostBudget(math.MaxUint64), WithStepBudget(math.MaxInt64))
					got, _ := s.answer(t)
					require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})))
					return
				}
				got, stats := s.answer(t)
				require.Less(t, stats.Steps, int64(20))
				if n == 64 || n == 65 {
					require.Empty(t, got.Results, "mla-62 is in use")
					return
				}
				require.Equal(t, []string{fmt.Sprintf("x=mla-%d", n-4), fmt.Sprintf("x=mla-%d", n-3), fmt.Sprintf("x=mla-%d", n-2)}, devicesOf(got.Results))
			})
		}
	}
}

// nested returns an expression that is true for all sets. Evaluating it for n devices costs about n to the power of loops.
func nested(loops int, text string) string {
	for i := range loops {
		text = fmt.Sprintf("devices.all(d%d, %s)", i, text)
	}
	return text
}

// An evaluation that exceeds its cost limit fails, even if the bounds could prove that the expression is true. So the search
// uses bounds only if no evaluation can exceed the limit.
func TestPruningRespectsTheCostLimit(t *testing.T) {
	const small, none = indices + ".min() > 0", indices + ".sum() < 0"
	const contains = "d0.attributes['mla.example.com'].text.contains(d1.attributes['mla.example.com'].text)"
	every := nested(2, strings.Repeat(contains+" && ", 100)+"true")
	short, long := "x", strings.Repeat("x", 64)
	for name, test := range map[string]struct {
		text       string
		devices    int
		expression string
		fails      bool
		tables     bool
	}{
		"cut":             {long, 14, every + " && " + none, true, false},
		"cut, but cheap":  {short, 14, every + " && " + none, false, true},
		"cut before":      {long, 14, none + " && " + every, false, true},
		"one cut":         {long, 15, every + " && " + small, true, false},
		"one proven":      {short, 15, every + " && " + small, false, true},
		"proven":          {long, 14, every, true, false},
		"proven on fewer": {long, 6, every, false, true},
		"loops":           {short, 14, nested(5, "d0.attributes['mla.example.com'].index >= 0"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			devices := ring(test.devices + 1)
			for i := range devices {
				devices[i].Attributes["text"] = resourceapi.DeviceAttribute{StringValue: &test.text}
			}
			s := scenario{fixture.Scenario{
				Slices: []*sliceBuilder{slice("1", devices...)}, InUse: []string{fmt.Sprintf("mla-%d", test.devices)},
				Claims: []*claimBuilder{claim("c").Want("x", int64(min(test.devices, 14))).Cel("x").Define("x", test.expression)},
			}}
			want, _ := s.answer(t, WithExhaustiveSearch(), WithCostBudget(math.MaxUint64), WithStepBudget(math.MaxInt64))
			got, stats := s.answer(t, WithCostBudget(math.MaxUint64), WithStepBudget(math.MaxInt64))
			require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})))
			require.Equal(t, test.fails, !got.onNode && got.Results == nil)
			if test.fails {
				require.Contains(t, got.Err, "one evaluation exceeds the cost limit of 1000000")
			}
			require.Equal(t, test.tables, stats.TableBuilds > 0, "%+v", stats)
		})
	}
}

// Several claims can share a CPU, but not a GPU. The search uses no pruner if two requests may get the same CPU, because the
// set may then contain the CPU twice.
func TestSharedDevicesOfOneRequestArePruned(t *testing.T) {
	const all = `class mla.example.com if device.driver == 'mla.example.com'; class cpu if device.driver == 'cpu.example.com'
slice 1; devices 4 gpu-# resource.kubernetes.io/numa=0; devices 4 more-# resource.kubernetes.io/numa=1
slice 2 driver=cpu.example.com; device cpu-0 resource.kubernetes.io/numa=0 +shared; device cpu-1 resource.kubernetes.io/numa=0 +shared; device cpu-2 resource.kubernetes.io/numa=1 +shared; device cpu-3 resource.kubernetes.io/numa=1 +shared
claim c; `
	const near = "; cel near = devices.all(d, devices.all(o, d.attributes['resource.kubernetes.io'].numa == o.attributes['resource.kubernetes.io'].numa))"
	for name, test := range map[string]struct {
		requests string
		pruned   bool
	}{
		"one request":              {"want gpu 2; want cpu 1 class=cpu", true},
		"several of them":          {"want gpu 2; want cpu 2 class=cpu", true},
		"CPUs first":               {"want cpu 2 class=cpu; want gpu 3", true},
		"two requests for CPUs":    {"want gpu 2; want cpu 1 class=cpu; want more 1 class=cpu", false},
		"two that can't be shared": {"want gpu 2; want other 1; want cpu 1 class=cpu", true},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 40 {
				s := given(t, all+test.requests+near)
				for _, d := range s.Slices[0].Spec.Devices {
					if random.IntN(2) == 0 {
						s.InUse = append(s.InUse, d.Name)
					}
				}
				want, _ := s.answer(t, WithExhaustiveSearch())
				got, stats := s.answer(t)
				require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})))
				if test.pruned {
					require.Zero(t, stats.Evaluations)
					require.LessOrEqual(t, stats.Steps, int64(12))
				} else if got.Results != nil {
					require.NotZero(t, stats.Evaluations)
				}
			}
		})
	}
}
