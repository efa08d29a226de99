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

// few sets are so many that evaluating each takes part of a second.
const few = 20_000

// TestShapes pins what the search does for each scenario and occupancy: the answer, and
// how much work it is.
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

// claim is the one that the allocator is asked with.
func (f *fleet) claim(t *testing.T) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := f.Claim()
	require.NoError(t, err)
	return claim
}

// requireVerified fails if the allocator gives other devices than expected.
func (f *fleet) requireVerified(t *testing.T, a structured.Allocator, claim *resourceapi.ResourceClaim) {
	t.Helper()
	_, err := f.verify(t.Context(), a, claim)
	require.NoError(t, err)
}

// testAnswer: the devices are those of the search written by hand, in the same
// order, and they have the shape.
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

// testWork: a step is one look for one more device.
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

// testWarm: an allocator evaluates nothing again that one before it, with the same
// cache, found out; nor does one for another node with the same devices.
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

// onOtherNode has the same devices in use on a node of another name.
func (f *fleet) onOtherNode(t *testing.T) *fleet {
	t.Helper()
	other := newHardware(t, f.Scenario, 2).occupied([]shape.Set{0, f.All() &^ f.free[0]})
	other.nodes, other.free, other.want = other.nodes[1:], other.free[1:], other.want[1:]
	return other
}

// testReference: the answer of the exhaustive search is the same, and it looks at as
// many sets as was computed.
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

// TestShapesOnManyNodes: the answers on nodes with other devices in use.
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

// features are those that are on by default in Kubernetes 1.37, so that upstream
// uses its default variant.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

// ofMesh is a claim for so many devices of a mesh that satisfy an expression, where all are free.
func ofMesh(rows, cols, count int, expression string) shape.Scenario {
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, rows, cols)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return shape.Scenario{Topology: mesh, Requests: []shape.Request{{Name: "mla", Driver: driver, Count: count}}, Expression: expression}
}

// asked is one node where all devices are free, and the claim.
func asked(tb testing.TB, s shape.Scenario) (*fleet, []*resourceapi.ResourceClaim) {
	tb.Helper()
	claim, err := s.Claim()
	require.NoError(tb, err)
	return newHardware(tb, s, 1).occupied([]shape.Set{0}), []*resourceapi.ResourceClaim{claim}
}

// unread means ring-12-4 and is written so that nothing can be told from a part of a
// set: lists of lists are not read.
const unread = "[devices.map(d, d.attributes['mla.example.com'].index)].flatten().max() - " +
	"[devices.map(d, d.attributes['mla.example.com'].index)].flatten().min() == 3"

func ringOfTwelve(tb testing.TB) shape.Scenario {
	tb.Helper()
	s := scenarioNamed(tb, "ring-12-4")
	s.Expression = unread
	return s
}

// TestUnreadIsUnread: each set is evaluated, up to the answer.
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
