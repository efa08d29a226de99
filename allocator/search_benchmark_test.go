// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/internal/testing/shape"
)

// warmAllocator returns an allocator for a node with devices in use. It has allocated the claims once to fill its caches.
func warmAllocator(t testing.TB, s shape.Scenario, inUse shape.Set) (*Allocator, *v1.Node, []*resourceapi.ResourceClaim) {
	t.Helper()
	slices, err := s.ResourceSlices(nodeName)
	require.NoError(t, err)
	lister := classes{}
	for _, class := range s.DeviceClasses() {
		lister[class.Name] = class
	}
	state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()}
	for i := range inUse.All() {
		d := s.Topology.Devices[i]
		state.AllocatedDevices.Insert(structured.MakeDeviceID(d.Driver, nodeName, d.Name))
	}
	claim, err := s.Claim()
	require.NoError(t, err)
	a, err := NewAllocator(t.Context(), structured.Features{}, state, lister, slices, dracel.NewCache(10, dracel.Features{}))
	require.NoError(t, err)
	node := newNode(nodeName)
	claims := []*resourceapi.ResourceClaim{claim}
	_, err = a.Allocate(t.Context(), node, claims)
	require.NoError(t, err)
	return a, node, claims
}

// BenchmarkSearch compares the search with a program written for the shape. It excludes the work of Allocate before and after
// the search, which test/perf measures. All tables and verdicts are cached.
//
// Most garbage comes from code that is not measured, and the heap is so small that the garbage collector would run all the
// time. So the benchmark runs the collector less often. The heap of a scheduler is a hundred times as large.
func BenchmarkSearch(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	for _, s := range shape.Scenarios() {
		for _, occupancy := range s.Occupancies {
			free := s.All() &^ occupancy.InUse
			b.Run("scenario="+s.Name+"/layout="+occupancy.Name+"/search=celset", func(b *testing.B) {
				a, node, claims := warmAllocator(b, s, occupancy.InUse)
				inventory, err := a.planner.InventoryOf(node)
				require.NoError(b, err)
				var steps int64
				var spent time.Duration
				for b.Loop() {
					search, err := search.New(b.Context(), a.planner.PlanFor(claims).With(node, inventory, a.planner.State.Of(inventory.Candidates)), nil)
					if err != nil {
						b.Fatal(err)
					}
					started := time.Now()
					if _, err := search.Run(); err != nil {
						b.Fatal(err)
					}
					spent += time.Since(started)
					steps = search.Work.Steps
				}
				b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/search")
				b.ReportMetric(float64(steps), "steps")
			})
			b.Run("scenario="+s.Name+"/layout="+occupancy.Name+"/search=handwritten", func(b *testing.B) {
				var steps int
				for b.Loop() {
					_, steps = s.HandWritten(free)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/search")
				b.ReportMetric(float64(steps), "steps")
			})
		}
	}
}
