// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/shape"
)

const (
	gridExpression = "devices.all(d, devices.filter(o, d != o && (" +
		"d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row && " +
		"(d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col + 1 || d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col - 1) || " +
		"d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col && " +
		"(d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row + 1 || d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row - 1)" +
		")).size() >= 2)"
	column = "d.attributes['mla.example.com'].col"
	extent = "devices.map(d, " + column + ").max() - devices.map(d, " + column + ").min()"
	// columnCounts has conditions that can each be true, but not together: the sum of six even and six odd numbers is even.
	columnCounts = "devices.filter(d, " + column + " % 2 == 0).size() == 6 && devices.map(d, " + column + ").sum() == 99"
)

// BenchmarkBudgets measures how fast searches without a result use up the two budgets: CEL cost (the metric cost/s) and steps
// (steps/s). The default budgets are derived from these speeds. A unit of cost is at most 250 ns of evaluation, so the maximum
// is four million units a second, less the search's other work.
func BenchmarkBudgets(b *testing.B) {
	for _, test := range []struct {
		name    string
		claim   shape.Scenario
		options []allocator.Option
	}{
		// The search evaluates every set, so it uses up the cost budget.
		{"expression=ring/sets=evaluated", ofMesh(1, 16, 4, extent+" == 2"), exhaustive},
		{"expression=grid/sets=evaluated", ofMesh(4, 4, 4, gridExpression+" && devices.size() == 3"), exhaustive},
		{"expression=unread/sets=evaluated", ofMesh(1, 16, 4, "devices.slice(0, 1).size() == 2"), exhaustive},
		// The search evaluates hardly any set, so it uses up the step budget. The grid of KEP-5254 is not here, because it
		// takes only one step.
		{"expression=sum/sets=bounded", ofMesh(1, 20, 10, "devices.map(d, "+column+" * 2).sum() == 191"), nil},
		{"expression=counts/sets=bounded", ofMesh(1, 18, 12, columnCounts), nil},
	} {
		b.Run(test.name, func(b *testing.B) {
			spent := &spending{}
			environment, err := device.NewEnvironment(cel.Config{Observer: spent})
			require.NoError(b, err)
			f, claims := asked(b, test.claim)
			options := slices.Concat(test.options, []allocator.Option{allocator.WithEnvironment(environment),
				allocator.WithCostBudget(math.MaxUint64), allocator.WithStepBudget(math.MaxInt64)})
			var steps int64
			for b.Loop() {
				// Create a new allocator each time, because an allocator remembers that there is no set.
				a, err := f.celset(b.Context(), options...)
				if err != nil {
					b.Fatal(err)
				}
				results, err := a.Allocate(b.Context(), f.nodes[0], claims)
				if err != nil || results != nil {
					b.Fatal("allocated: ", results != nil, ", error: ", err)
				}
				steps += a.Stats().Steps
			}
			b.ReportMetric(float64(spent.cost)/b.Elapsed().Seconds(), "cost/s")
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

var exhaustive = []allocator.Option{allocator.WithExhaustiveSearch()}

// spending adds up the cost of all evaluations.
type spending struct{ cost uint64 }

func (s *spending) ObserveCompilation(string, bool, error) {}

func (s *spending) ObserveEvaluation(_ string, cost uint64, _ error) { s.cost += cost }
