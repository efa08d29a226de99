// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

// keepWholeKind is the test case of scheduler_perf whose workloads run once for each variant of a
// configuration. They are named <test case>/<workload>/<variant>.
const keepWholeKind = "KeepWhole/"

// The variants, by what they say beside the configuration in manifests.
const (
	variantFirst = "first"
	variantAll   = "all"
	variantWhole = "keepwhole"
)

var variantTitles = map[string]string{
	variantFirst: "as it is", variantAll: "`allocator: All`", variantWhole: "`defaultPreference: KeepWhole`",
}

// keepWholePart has the configurations of each workload below each other.
func (r *Results) keepWholePart() string {
	if len(r.Workloads) == 0 {
		return ""
	}
	text := "\n## KeepWhole\n\n" + keepWholeText
	text += fmt.Sprintf("Measured on: %s. %s", r.measuredOn(), keepWholeNoise)
	text += "| in use | pods | configuration | pods/s | attempt p50 / p95 / p99, ms | CPU a pod, ms | allocated a pod, MiB | nodes asked | known | than as it is: throughput | processor time | than `All`: throughput | processor time |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	for _, workload := range r.variedWorkloads() {
		p, ok := placeOf(workload)
		if !ok {
			continue
		}
		for _, variant := range []string{variantFirst, variantAll, variantWhole} {
			w := r.named(workload + "/" + variant)
			if w == nil {
				continue
			}
			versus := [4]string{}
			for i, with := range []string{variantFirst, variantAll} {
				if base := r.named(workload + "/" + with); base != nil && variant != with && variant != variantFirst {
					versus[2*i], versus[2*i+1] = spread(w, base, throughput, false), spread(w, base, processor, true)
				}
			}
			nodes, known := "", ""
			if asked := w.median(func(r Run) float64 { return r.Nodes }); asked > 0 {
				nodes, known = digits(asked), fmt.Sprintf("%.1f %%", 100*w.median(func(r Run) float64 { return r.Known / max(r.Nodes, 1) }))
			}
			text += fmt.Sprintf("| %s | %s | %s | %s | %s / %s / %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", p.occupancy, p.shape, variantTitles[variant],
				digits(w.median(throughput)),
				digits(w.median(func(r Run) float64 { return r.Attempt.P50 })), digits(w.median(func(r Run) float64 { return r.Attempt.P95 })),
				digits(w.median(func(r Run) float64 { return r.Attempt.P99 })),
				digits(w.median(processor)), digits(w.median(func(r Run) float64 { return r.Allocated })), nodes, known,
				versus[0], versus[1], versus[2], versus[3])
		}
	}
	return text
}

// variedWorkloads are the names of workloads without that of the variant, in the order of occupancies.
func (r *Results) variedWorkloads() []string {
	var names []string
	for _, occupancy := range []string{"half", "fragmented"} {
		for _, w := range r.Workloads {
			name := w.Name[:max(0, strings.LastIndex(w.Name, "/"))]
			if strings.Contains(name, "_"+occupancy+"_") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// spread is the median of the ratios of runs beside each other, and the least and the greatest.
func spread(w, base *Workload, of func(Run) float64, inverse bool) string {
	ratios := ratios(w, base, of, inverse)
	if len(ratios) < 2 {
		return times(ratio(w, base, of, inverse))
	}
	return fmt.Sprintf("%s (%s to %s)", times(middle(ratios)), times(slices.Min(ratios)), times(slices.Max(ratios)))
}
