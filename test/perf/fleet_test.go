// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
)

// hardware is a number of nodes with the devices of one scenario.
type hardware struct {
	shape.Scenario
	classes classList
	nodes   []*v1.Node
	slices  [][]*resourceapi.ResourceSlice // ResourceSlices of each node
}

func newHardware(tb testing.TB, s shape.Scenario, nodes int) *hardware {
	tb.Helper()
	h := &hardware{Scenario: s, classes: s.DeviceClasses()}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		slices, err := s.ResourceSlices(name)
		require.NoError(tb, err)
		h.nodes = append(h.nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		h.slices = append(h.slices, slices)
	}
	return h
}

type classList []*resourceapi.DeviceClass

func (l classList) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classList) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no DeviceClass %q", name)
}

// A fleet is hardware with some devices in use on each node.
type fleet struct {
	*hardware
	nodes  []*v1.Node
	slices []*resourceapi.ResourceSlice
	free   []shape.Set
	// want is the expected set of each node, or empty if no set fits.
	want  []shape.Set
	state structured.AllocatedState
	// selectors is the cache of compiled selectors, which a scheduler also has.
	selectors *dracel.Cache
}

// occupied returns a fleet with one node for each occupancy (the devices in use).
func (h *hardware) occupied(occupancies []shape.Set) *fleet {
	f := &fleet{
		hardware: h,
		nodes:    h.nodes[:len(occupancies)],
		state:    structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()},
		selectors: dracel.NewCache(10, dracel.Features{
			EnableConsumableCapacity: true, EnableListTypeAttributes: true,
		}),
	}
	for i, inUse := range occupancies {
		free := h.All() &^ inUse
		var want shape.Set
		if h.Name != "" { // only named scenarios have a hand-written search
			want, _ = h.HandWritten(free)
		}
		f.free, f.want = append(f.free, free), append(f.want, want)
		f.slices = append(f.slices, h.slices[i]...)
		for j := range inUse.All() {
			d := h.Topology.Devices[j]
			f.state.AllocatedDevices.Insert(structured.MakeDeviceID(d.Driver, f.nodes[i].Name, d.Name))
		}
	}
	return f
}

// celset returns the allocator of celset for the fleet.
func (f *fleet) celset(ctx context.Context, options ...allocator.Option) (*allocator.Allocator, error) {
	return allocator.NewAllocator(ctx, features, f.state, f.classes, f.slices, f.selectors, options...)
}

// exhaustive returns the reference allocator, which tries all sets. Only ctx limits its search.
func (f *fleet) exhaustive(ctx context.Context) (*allocator.Allocator, error) {
	return f.celset(ctx, allocator.WithExhaustiveSearch(), allocator.WithCostBudget(math.MaxUint64))
}

// newCache returns an option that makes allocators share a new cache. If allocators get the same option, the cache of the later
// ones is warm.
func newCache() allocator.Option { return allocator.WithCache(allocator.NewCache()) }

// verify allocates the claim on all nodes, one after the other, as a scheduler's Filter does, and compares the devices with the
// expected ones. It returns the number of nodes done.
func (f *fleet) verify(ctx context.Context, a structured.Allocator, claim *resourceapi.ResourceClaim) (int, error) {
	for i, node := range f.nodes {
		results, err := a.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			return i, err
		}
		if got, want := sets.New(devicesOf(results)...), sets.New(f.Names(f.want[i])...); !got.Equal(want) {
			return i, fmt.Errorf("%s, free %v: allocated %v, expected %v", node.Name, f.Names(f.free[i]), sets.List(got), sets.List(want))
		}
	}
	return len(f.nodes), nil
}

// devicesOf returns the names of the allocated devices, in the order of the allocation.
func devicesOf(results []resourceapi.AllocationResult) []string {
	var names []string
	for _, claim := range results {
		for _, result := range claim.Devices.Results {
			names = append(names, result.Device)
		}
	}
	return names
}

// TestMemoryOfNodes checks the cache memory per node that docs/limits.md states. The nodes have the same hardware, but
// different devices in use, with and without serial numbers. If an expression may read the serial numbers, all nodes differ.
func TestMemoryOfNodes(t *testing.T) {
	const nodes = 1000
	tests := []struct {
		scenario      string
		serials, read bool
		limit         int
	}{
		{"grid-4x4-4", false, false, 4 << 10},
		{"grid-4x4-4", true, false, 4 << 10},
		{"grid-4x4-4", true, true, 48 << 10},
		{"grid-8x8-4", false, false, 10 << 10},
		{"grid-8x8-4", true, false, 10 << 10},
		{"grid-8x8-4", true, true, 160 << 10},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s/serials=%t/read=%t", test.scenario, test.serials, test.read), func(t *testing.T) {
			s := scenarioNamed(t, test.scenario)
			cache := allocator.NewCache()
			hardware := newHardware(t, s, nodes)
			if test.serials {
				hardware.number()
			}
			fleet := hardware.occupied(s.Variants(s.Occupancies[2], nodes))
			expression := s.Expression
			if test.read {
				expression = "(" + expression + ") && devices.all(d, d.attributes[d.driver].serial != '')"
			}
			claim, err := s.ClaimWith(expression)
			require.NoError(t, err)
			fleet.askAll(t, cache, claim)
			cache = allocator.NewCache() // warm the cache of compiled expressions, but not of nodes
			before := heap()
			fleet.askAll(t, cache, claim)
			perNode := (heap() - before) / nodes
			t.Logf("%d bytes for a node, of which the cache counts %d", perNode, cache.Used()/nodes)
			require.Less(t, perNode, test.limit)
			require.Greater(t, perNode, 500, "what is measured is not there")
			runtime.KeepAlive(cache)
			runtime.KeepAlive(fleet)
		})
	}
}

func scenarioNamed(tb testing.TB, name string) shape.Scenario {
	tb.Helper()
	all := shape.Scenarios()
	i := slices.IndexFunc(all, func(s shape.Scenario) bool { return s.Name == name })
	require.GreaterOrEqual(tb, i, 0, name)
	return all[i]
}

// number adds an attribute to each device whose value no other device has.
func (h *hardware) number() {
	for _, published := range h.slices {
		for _, slice := range published {
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].Attributes["serial"] = resourceapi.DeviceAttribute{
					StringValue: ptr.To(slice.Spec.Pool.Name + "-" + slice.Spec.Devices[i].Name),
				}
			}
		}
	}
}

// askAll allocates the claim on all nodes with a new allocator and the given cache.
func (f *fleet) askAll(t *testing.T, cache *allocator.Cache, claim *resourceapi.ResourceClaim) {
	t.Helper()
	a, err := f.celset(t.Context(), allocator.WithCache(cache))
	require.NoError(t, err)
	for _, node := range f.nodes {
		_, err := a.Allocate(t.Context(), node, []*resourceapi.ResourceClaim{claim})
		require.NoError(t, err, node.Name)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}
