// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPreemptionPart(t *testing.T) {
	workload := func(name string, seconds, victims float64) *Workload {
		return &Workload{Name: name, Runs: []Run{{Pods: 100, Seconds: seconds, CPU: 10 * seconds, Victims: victims, Throughput: 7}}}
	}
	rest, _, evicting := (&Results{Workloads: []*Workload{
		workload("Preemption/200nodes_16devices_singles_grid", 10, 4),
		workload("Preemption/200nodes_16devices_free_grid", 2, 0),
		workload("Preemption/1000nodes_16devices_fours_grid", 4, 2),
		workload("Preemption/1000nodes_16devices_fours_count", 4, 1),
		workload("PreemptionBasic/1000Nodes/celset", 4, 0),
		workload("PreemptionBasic/1000Nodes/upstream", 4, 0),
		workload("Steady/1000nodes_16devices_half_count", 10, 0),
	}}).split()
	require.Len(t, rest.Workloads, 1)
	part := evicting.preemptionPart()
	require.Contains(t, part, `
| 1000 | pods with 4 each | count | 1.00 | 25.0 | 0 / 0 / 0 | 40.0 | – | – |
| 1000 | pods with 4 each | grid | 2.00 | 25.0 | 0 / 0 / 0 | 40.0 | – | – |
| 200 | nobody | grid | 0 | 50.0 | 0 / 0 / 0 | 20.0 |  |  |
| 200 | pods with 1 each | grid | 4.00 | 10.0 | 0 / 0 / 0 | 100 | 0.20 | 0.20 |
`)
	require.Contains(t, part, "| PreemptionBasic/1000Nodes | 25.0 | 25.0 | 0 | 0 | 40.0 | 40.0 | 1.00 | 1.00 |\n")
	require.Empty(t, (&Results{}).preemptionPart())
}
