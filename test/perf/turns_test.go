// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"sort"
	"testing"
	"time"
)

// inTurn measures two searches that differ by less than the speed of a machine does from one
// second to the next: they take turns. The metric "ratio" is the middle of the ratios of all
// pairs, "fast-ns" and "exhaustive-ns" are the middles of the times; ns/op is a pair.
func inTurn(b *testing.B, fast, exhaustive func() error) {
	b.Helper()
	searches := [2]func() error{fast, exhaustive}
	var times [2][]float64
	var ratios []float64
	for first := 0; b.Loop(); first = 1 - first {
		// Who comes second finds the devices in the processor's cache.
		var pair [2]float64
		for _, i := range []int{first, 1 - first} {
			start := time.Now()
			err := searches[i]()
			pair[i] = float64(time.Since(start).Nanoseconds())
			if err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], pair[i])
		}
		ratios = append(ratios, pair[0]/pair[1])
	}
	b.ReportMetric(middle(times[0]), "fast-ns")
	b.ReportMetric(middle(times[1]), "exhaustive-ns")
	b.ReportMetric(middle(ratios), "ratio")
}

func middle(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}
