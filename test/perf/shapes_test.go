// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// few is the maximum number of sets that the exhaustive search may have to try, so that it takes less than a second.
const few = 20_000

// TestShapes checks the result and the work of the search for each scenario and occupancy.
func TestShapes(t *testing.T) {
	for _, s := range shape.Scenarios() {
		h := newHardware(t, s, 1)
		for _, o := range s.Occupancies {
			t.Run(s.Name+"/"+o.Name, func(t *testing.T) {
				f := h.occupied([]shape.Set{o.InUse})
				t.Run("answer", f.testAnswer)
				t.Run("work", f.testWork)
				t.Run("warm", f.testWarm)
				t.Run("reference", f.testReference)
			})
		}
	}
}

// claim returns the scenario's claim.
func (f *fleet) claim(t *testing.T) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := f.Claim()
	require.NoError(t, err)
	return claim
}

// requireVerified requires that the allocator returns the expected devices on all nodes.
func (f *fleet) requireVerified(t *testing.T, a structured.Allocator, claim *resourceapi.ResourceClaim) {
	t.Helper()
	_, err := f.verify(t.Context(), a, claim)
	require.NoError(t, err)
}

// testAnswer checks that a hand-written search finds the same devices in the same order, and that the devices form the shape.
func (f *fleet) testAnswer(t *testing.T) {
	a, err := f.celset(t.Context(), newCache())
	require.NoError(t, err)
	results, err := a.Allocate(t.Context(), f.nodes[0], []*resourceapi.ResourceClaim{f.claim(t)})
	require.NoError(t, err)
	if f.want[0] == 0 {
		require.Nil(t, results)
		return
	}
	names := devicesOf(results)
	require.Equal(t, f.Names(f.want[0]), names)
	require.True(t, f.Holds(names), "%v", names)
}

// testWork checks the numbers of steps and evaluations. In each step, the search looks for one more device.
func (f *fleet) testWork(t *testing.T) {
	a, err := f.celset(t.Context(), newCache())
	require.NoError(t, err)
	f.requireVerified(t, a, f.claim(t))
	stats := a.Stats()
	_, handwritten := f.HandWritten(f.free[0])
	n := int64(len(f.Topology.Devices))
	t.Logf("%d steps, %d by hand; %d evaluations for tables of %d devices, %d of sets; found %v",
		stats.Steps, handwritten, stats.TableEvaluations, n, stats.Evaluations, f.Names(f.want[0]))
	t.Run("steps", func(t *testing.T) {
		require.LessOrEqual(t, stats.Steps, int64(max(50, 50*handwritten)))
	})
	t.Run("tables", func(t *testing.T) {
		require.LessOrEqual(t, stats.TableEvaluations, n*n+4*n)
	})
	t.Run("evaluations", func(t *testing.T) {
		require.LessOrEqual(t, stats.Evaluations, int64(1), "one for an accepted set")
	})
}

// testWarm checks that an allocator with a warm cache does not repeat evaluations, not even for another node with the same
// devices.
func (f *fleet) testWarm(t *testing.T) {
	cache := newCache()
	f.requireVerified(t, f.sharing(t, cache), f.claim(t))
	for name, warm := range map[string]*fleet{"same node": f, "other node": f.onOtherNode(t)} {
		a := warm.sharing(t, cache)
		warm.requireVerified(t, a, f.claim(t))
		require.Zero(t, a.Stats().TableEvaluations, "%s: evaluations for tables", name)
		require.Zero(t, a.Stats().Evaluations, "%s: evaluations of sets", name)
	}
}

func (f *fleet) sharing(t *testing.T, cache allocator.Option) *allocator.Allocator {
	t.Helper()
	a, err := f.celset(t.Context(), cache)
	require.NoError(t, err)
	return a
}

// onOtherNode returns a fleet with the same devices in use, on a node with another name.
func (f *fleet) onOtherNode(t *testing.T) *fleet {
	t.Helper()
	other := newHardware(t, f.Scenario, 2).occupied([]shape.Set{0, f.All() &^ f.free[0]})
	other.nodes, other.free, other.want = other.nodes[1:], other.free[1:], other.want[1:]
	return other
}

// testReference checks that the exhaustive search has the same result, and that it tries as many sets as computed.
func (f *fleet) testReference(t *testing.T) {
	if f.Sets(f.free[0]).Cmp(big.NewInt(few)) > 0 {
		t.Skipf("%v sets", f.Sets(f.free[0]))
	}
	a, err := f.exhaustive(t.Context())
	require.NoError(t, err)
	f.requireVerified(t, a, f.claim(t))
	if f.Enough(f.free[0]) {
		require.Equal(t, f.Sets(f.free[0]).Int64(), a.Stats().Evaluations)
	}
}

// TestShapesOnManyNodes checks the results on several nodes with different devices in use.
func TestShapesOnManyNodes(t *testing.T) {
	const nodes = 20
	for _, s := range shape.Scenarios() {
		h := newHardware(t, s, nodes)
		for _, o := range s.Occupancies {
			t.Run(s.Name+"/"+o.Name, func(t *testing.T) {
				f := h.occupied(s.Variants(o, nodes))
				a, err := f.celset(t.Context(), newCache())
				require.NoError(t, err)
				f.requireVerified(t, a, f.claim(t))
			})
		}
	}
}

const driver = "mla.example.com"

// features are the features that are on by default in Kubernetes 1.37. With them, upstream's library uses its default
// allocator.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

// ofMesh returns a scenario: a claim for count devices of a mesh that satisfy the expression. All devices are free.
func ofMesh(rows, cols, count int, expression string) shape.Scenario {
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, rows, cols)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return shape.Scenario{Topology: mesh, Requests: []shape.Request{{Name: "mla", Driver: driver, Count: count}}, Expression: expression}
}

// asked returns a fleet of one node with all devices free, and the scenario's claim.
func asked(tb testing.TB, s shape.Scenario) (*fleet, []*resourceapi.ResourceClaim) {
	tb.Helper()
	claim, err := s.Claim()
	require.NoError(tb, err)
	return newHardware(tb, s, 1).occupied([]shape.Set{0}), []*resourceapi.ResourceClaim{claim}
}

// unread is the expression of the scenario ring-12-4 in a form that the search can't analyse, with lists of lists.
const unread = "[devices.map(d, d.attributes['mla.example.com'].index)].flatten().max() - " +
	"[devices.map(d, d.attributes['mla.example.com'].index)].flatten().min() == 3"

func ringOfTwelve(tb testing.TB) shape.Scenario {
	tb.Helper()
	s := scenarioNamed(tb, "ring-12-4")
	s.Expression = unread
	return s
}

// TestUnreadIsUnread checks that the search evaluates each set for the expression unread until it finds the result.
func TestUnreadIsUnread(t *testing.T) {
	s := ringOfTwelve(t)
	h := newHardware(t, s, 1)
	for _, o := range s.Occupancies {
		f := h.occupied([]shape.Set{o.InUse})
		claim, err := f.Claim()
		require.NoError(t, err)
		a, err := f.celset(t.Context(), newCache())
		require.NoError(t, err)
		f.requireVerified(t, a, claim)
		require.Equal(t, f.Sets(f.free[0]).Int64(), a.Stats().Evaluations, o.Name)
	}
}
