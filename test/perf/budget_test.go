// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/topology"
)

// BenchmarkBudgets measures what the defaults of the budgets are derived from: how
// fast searches that find nothing use up CEL cost (the metric cost/s) and steps
// (steps/s). A unit of cost stands for at most 250 ns of evaluations, which is four million a
// second; what the search does besides comes on top.
func BenchmarkBudgets(b *testing.B) {
	row, mesh := meshOf(b, 1, 16), meshOf(b, 4, 4)
	for _, test := range []struct {
		name   string
		slices []*resourceapi.ResourceSlice
		claim  *resourceapi.ResourceClaim
		opts   []allocator.Option
	}{
		// Every set is evaluated: what counts is the cost.
		{"expression=ring/sets=evaluated", row, constrained(b, 4, extent+" == 2"), exhaustive},
		{"expression=grid/sets=evaluated", mesh, constrained(b, 4, gridExpression+" && devices.size() == 3"), exhaustive},
		{"expression=unread/sets=evaluated", row, constrained(b, 4, "devices.slice(0, 1).size() == 2"), exhaustive},
		// Hardly one is: what counts are the steps. The grid of KEP-5254 is answered in one.
		{"expression=sum/sets=bounded", meshOf(b, 1, 20), constrained(b, 10, "devices.map(d, "+column+" * 2).sum() == 191"), nil},
		{"expression=counts/sets=bounded", meshOf(b, 1, 18), constrained(b, 12, columnCounts), nil},
	} {
		b.Run(test.name, func(b *testing.B) { benchmarkBudget(b, test.slices, test.claim, test.opts...) })
	}
}

const (
	column = "d.attributes['mla.example.com'].col"
	extent = "devices.map(d, " + column + ").max() - devices.map(d, " + column + ").min()"
	// columnCounts can be met one by one, but not together: six even and six odd
	// numbers have an even sum.
	columnCounts = "devices.filter(d, " + column + " % 2 == 0).size() == 6 && devices.map(d, " + column + ").sum() == 99"
)

var exhaustive = []allocator.Option{allocator.WithExhaustiveSearch()}

func meshOf(b *testing.B, rows, columns int) []*resourceapi.ResourceSlice {
	b.Helper()
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, rows, columns)
	return slicesOf(b, mesh, err)
}

// spending adds up what evaluations cost.
type spending struct{ cost uint64 }

func (s *spending) ObserveCompilation(string, bool, error) {}

func (s *spending) ObserveEvaluation(_ string, cost uint64, _ error) { s.cost += cost }

func benchmarkBudget(b *testing.B, slices []*resourceapi.ResourceSlice, c *resourceapi.ResourceClaim, opts ...allocator.Option) {
	spent := &spending{}
	environment, err := device.NewEnvironment(cel.Config{Observer: spent})
	if err != nil {
		b.Fatal(err)
	}
	opts = append(opts, allocator.WithEnvironment(environment),
		allocator.WithCostBudget(math.MaxUint64), allocator.WithStepBudget(math.MaxInt64))
	selectors := dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true})
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	var steps int64
	for b.Loop() {
		// A new one each time: an allocator remembers that there is no such set.
		a, err := allocator.NewAllocator(b.Context(), features, structured.AllocatedState{}, class, slices, selectors, opts...)
		if err != nil {
			b.Fatal(err)
		}
		results, err := a.Allocate(b.Context(), node, []*resourceapi.ResourceClaim{c})
		if err != nil || results != nil {
			b.Fatal("allocated: ", results != nil, ", error: ", err)
		}
		steps += a.Stats().Steps
	}
	b.ReportMetric(float64(spent.cost)/b.Elapsed().Seconds(), "cost/s")
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}
