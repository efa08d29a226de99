// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeepWholePart(t *testing.T) {
	workload := func(name string, throughputs ...float64) *Workload {
		w := &Workload{Name: name}
		for _, throughput := range throughputs {
			w.Runs = append(w.Runs, Run{Throughput: throughput, CPU: 100 / throughput, Nodes: 10, Known: 9})
		}
		return w
	}
	rest, variants, _ := (&Results{Machine: Machine{Go: "go1"}, Workloads: []*Workload{
		workload("KeepWhole/1000nodes_16devices_fragmented_grid/first", 10),
		workload("KeepWhole/1000nodes_16devices_half_count/all", 20, 20, 40),
		workload("KeepWhole/1000nodes_16devices_half_count/first", 10, 20, 40),
		workload("KeepWhole/1000nodes_16devices_half_count/keepwhole", 10, 10, 30),
		workload("Steady/1000nodes_16devices_half_count", 10),
	}}).split()
	require.Len(t, rest.Workloads, 1)
	require.Equal(t, "go1", variants.Go)
	part := variants.keepWholePart()
	require.Contains(t, part, `
| half | count | as it is | 20.0 | 0 / 0 / 0 | 5.00 | 0 | 10.0 | 90.0 % |  |  |  |  |
| half | count | `+"`allocator: All`"+` | 20.0 | 0 / 0 / 0 | 5.00 | 0 | 10.0 | 90.0 % | 1.00 (1.00 to 2.00) | 1.00 (1.00 to 2.00) |  |  |
| half | count | `+"`defaultPreference: KeepWhole`"+` | 10.0 | 0 / 0 / 0 | 10.0 | 0 | 10.0 | 90.0 % | 0.75 (0.50 to 1.00) | 0.75 (0.50 to 1.00) | 0.50 (0.50 to 0.75) | 0.50 (0.50 to 0.75) |
| fragmented | grid | as it is | 10.0 |`)
	require.Empty(t, (&Results{}).keepWholePart())
}
