// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// preemptionKind is the test case of scheduler_perf in which pods are evicted for devices. Upstream's have
// names with the same word, and come in pairs.
const preemptionKind = "Preemption/"

// The occupancies, by who has the devices. With nobody the others are compared.
const (
	nobody  = "free"
	fours   = "fours"
	singles = "singles"
)

var occupants = map[string]string{nobody: "nobody", fours: "pods with 4 each", singles: "pods with 1 each"}

// preemptionPart has pods for which others are evicted, and those for which nobody has to go.
func (r *Results) preemptionPart() string {
	if len(r.Workloads) == 0 {
		return ""
	}
	text := "\n## Preemption\n\n" + preemptionText
	text += fmt.Sprintf("Measured on: %s.\n\n", r.measuredOn())
	text += "| nodes | who has the 16 devices | pods | evicted for each | pods/s | attempt p50 / p95 / p99, ms | CPU a pod, ms | throughput | processor time |\n" +
		"|---|---|---|---|---|---|---|---|---|\n"
	for _, p := range r.evictingPlaces() {
		w, free := r.named(p.name()), r.named(p.among(nobody).name())
		versus := [2]string{}
		if p.occupancy != nobody {
			versus = [2]string{times(ratio(w, free, rate, false)), times(ratio(w, free, processor, true))}
		}
		text += fmt.Sprintf("| %d | %s | %s | %s | %s | %s / %s / %s | %s | %s | %s |\n", p.nodes, occupants[p.occupancy], p.shape,
			digits(w.median(func(r Run) float64 { return r.Victims })), digits(w.median(rate)),
			digits(w.median(func(r Run) float64 { return r.Attempt.P50 })), digits(w.median(func(r Run) float64 { return r.Attempt.P95 })),
			digits(w.median(func(r Run) float64 { return r.Attempt.P99 })), digits(w.median(processor)), versus[0], versus[1])
	}
	return text + "\n### Pods without devices\n\n" + upstreamPreemptionText + r.upstreamTable(rate)
}

// rate is the number of pods by the time for all of them. They come at once and are done in a second or
// two, of which scheduler_perf's samples are the first.
func rate(r Run) float64 {
	if r.Seconds == 0 {
		return throughput(r)
	}
	return r.Pods / r.Seconds
}

// among is the same with others there.
func (p place) among(occupancy string) place {
	p.occupancy = occupancy
	return p
}

// evictingPlaces are in the order of the nodes, the shapes and who is there.
func (r *Results) evictingPlaces() []place {
	var all []place
	for _, w := range r.Workloads {
		if p, ok := placeOf(w.Name); ok && strings.HasPrefix(w.Name, preemptionKind) {
			all = append(all, p)
		}
	}
	shapes, occupancies := []string{"count", "grid", "block"}, []string{nobody, fours, singles}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(-cmp.Compare(a.nodes, b.nodes), cmp.Compare(slices.Index(shapes, a.shape), slices.Index(shapes, b.shape)),
			cmp.Compare(slices.Index(occupancies, a.occupancy), slices.Index(occupancies, b.occupancy)))
	})
	return all
}
