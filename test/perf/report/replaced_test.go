// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What was measured again takes the place of what was kept, and is compared with nothing of another
// machine.
func TestReplaced(t *testing.T) {
	workload := func(name string, pods float64) *Workload {
		return &Workload{Name: name, Runs: []Run{{Throughput: pods, CPU: 100 / pods}}}
	}
	const small, few, many, match = "Steady/1000nodes_16devices_half_grid", "Steady/5000nodes_16devices_half_count", "Steady/5000nodes_16devices_half_grid", "Steady/5000nodes_16devices_half_match"
	one, two := Machine{CPU: "one", Cores: 2, Go: "go1"}, Machine{CPU: "two", Cores: 2, Go: "go1"}
	kept := &Results{Machine: one, Workloads: []*Workload{workload(small, 20), workload(few, 10), workload(many, 10), workload(match, 5)}}
	require.Equal(t, []growth{{place{"Steady", "half", "grid", 1000, 16}, place{"Steady", "half", "grid", 5000, 16}}}, kept.growths())
	require.Equal(t, "one, 2 cores, go1", kept.measuredOn())

	results := kept.replaced(&Results{Machine: two, Workloads: []*Workload{workload(many, 40), workload(few, 20)}})
	require.Equal(t, one, results.Machine)
	require.Len(t, results.Workloads, 4)
	require.Equal(t, 2.0, ratio(results.named(many), results.named(few), throughput, false))
	require.Zero(t, ratio(results.named(match), results.named(few), throughput, false), "of two machines")
	require.Empty(t, results.growths())
	require.Equal(t, "one, 2 cores, go1;\nand on two, 2 cores, go1: `"+few+"`, `"+many+"`", results.measuredOn())
	require.NotContains(t, results.nodesPlot(), "5000", "what ran elsewhere is not in the plot")

	// On the machine of the results again.
	again := results.replaced(&Results{Machine: one, Workloads: []*Workload{workload(few, 10), workload(many, 10)}})
	require.Equal(t, kept, again)
	// All of it on the other one, in two steps.
	again = results.replaced(&Results{Machine: two, Workloads: []*Workload{workload(small, 20), workload(match, 5)}})
	require.Equal(t, "two, 2 cores, go1", again.measuredOn())
	require.Equal(t, 0.25, ratio(again.named(match), again.named(few), throughput, false))
}
