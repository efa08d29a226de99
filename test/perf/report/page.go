// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The shapes whose pods run with upstream's plugin, and what all shapes are compared with.
const base = "count"

func isUpstream(shape string) bool { return shape == base || shape == "match" }

// Beside is what the page says beside the results that it is about.
type Beside struct {
	// Variants are results of workloads that compare configurations, Evicting those in which pods are
	// evicted.
	Variants, Evicting *Results
	// Soak and Churn are the logs of test/soak, Churn of the run with priorities.
	Soak, Churn string
}

// Page is docs/performance.md, and the plots by the names of their files in
// docs/performance.
func (r *Results) Page(beside Beside) (page string, plots map[string]string) {
	var text strings.Builder
	text.WriteString(intro)
	fmt.Fprintf(&text, "Measured on: %s.\n%s", r.measuredOn(), noise)
	text.WriteString(r.promises())
	text.WriteString("\n## Sets of devices\n\n" + setsText)
	text.WriteString(r.setsTable())
	text.WriteString("\n![Processor time of a pod by the number of nodes](performance/nodes.svg)\n")
	text.WriteString("\n### With more nodes\n\n" + growthText + r.growthTable())
	text.WriteString("\n### What the search did\n\n" + searchText + r.searchTable())
	text.WriteString(beside.Variants.keepWholePart())
	text.WriteString(beside.Evicting.preemptionPart())
	text.WriteString("\n## Upstream's own workloads\n\n" + upstreamText)
	text.WriteString(r.upstreamTable(throughput))
	text.WriteString("\n![Processor time of upstream's workloads with our plugin, compared with upstream's](performance/upstream.svg)\n")
	text.WriteString("\n## Half an hour\n\n" + soakText + "```text\n" + strings.TrimSpace(beside.Soak) + "\n```\n")
	text.WriteString("\n## Half an hour with priorities\n\n" + churnText + "```text\n" + strings.TrimSpace(beside.Churn) + "\n```\n")
	text.WriteString(again)
	return text.String(), map[string]string{"nodes.svg": r.nodesPlot(), "upstream.svg": r.upstreamPlot()}
}

// promises are the numbers that the project wants to keep, beside those that were measured.
func (r *Results) promises() string {
	row := func(what, want string, of place) string {
		w, b := r.named(of.name()), r.named(of.with(base).name())
		runs := 0
		if w != nil {
			runs = len(w.Runs)
		}
		return fmt.Sprintf("| %s | %s | %s | %s | %d |\n", what, want,
			times(ratio(w, b, throughput, false)), times(ratio(w, b, processor, true)), runs)
	}
	text := "\n| compared with as many devices of any kind | wanted | throughput | processor time | runs |\n|---|---|---|---|---|\n"
	text += row("2x2 of 16 devices, 1,000 nodes, half of the devices in use", "0.90", place{"Steady", "half", "grid", 1000, 16})
	text += row("2x2 of 16 devices, 5,000 nodes, no such set on nine of ten", "0.50", place{"Steady", "fragmented", "grid", 5000, 16})
	throughputs, processors := r.upstreamRatios(throughput)
	if len(throughputs) > 0 {
		text += fmt.Sprintf("| upstream's own workloads, the slowest of %d | 0.95 | %s | %s | |\n",
			len(throughputs), times(slices.Min(throughputs)), times(slices.Min(processors)))
		text += fmt.Sprintf("| upstream's own workloads, the median | | %s | %s | |\n", times(middle(throughputs)), times(middle(processors)))
	}
	return text + "\nMore than 1 is better than upstream's plugin in both columns: more pods a second, or less processor time for each.\n"
}

// setsTable has our workloads, those with something in common below each other.
func (r *Results) setsTable() string {
	text := "| nodes | devices | in use | pods | plugin | pods/s | attempt p50 / p95 / p99, ms | CPU a pod, ms | allocated a pod, MiB | heap, MiB | throughput | processor time |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	for _, p := range r.places() {
		w, b := r.named(p.name()), r.named(p.with(base).name())
		plugin, versus := "celset", [2]string{"", ""}
		if isUpstream(p.shape) {
			plugin = "upstream"
		}
		if p.shape != base {
			versus = [2]string{times(ratio(w, b, throughput, false)), times(ratio(w, b, processor, true))}
		}
		occupancy := p.occupancy
		if p.kind != "Steady" {
			occupancy += ", " + strings.ToLower(p.kind)
		}
		text += fmt.Sprintf("| %d | %d | %s | %s | %s | %s | %s / %s / %s | %s | %s | %s | %s | %s |\n", p.nodes, p.devices, occupancy, p.shape, plugin,
			digits(w.median(throughput)),
			digits(w.median(func(r Run) float64 { return r.Attempt.P50 })), digits(w.median(func(r Run) float64 { return r.Attempt.P95 })),
			digits(w.median(func(r Run) float64 { return r.Attempt.P99 })), digits(w.median(processor)),
			digits(w.median(func(r Run) float64 { return r.Allocated })), digits(w.median(func(r Run) float64 { return r.HeapMiB })),
			versus[0], versus[1])
	}
	return text
}

// searchTable has what our allocator did for a pod.
func (r *Results) searchTable() string {
	text := "| nodes | devices | in use | pods | nodes asked | known | steps | evaluations |\n|---|---|---|---|---|---|---|---|\n"
	for _, p := range r.places() {
		if isUpstream(p.shape) {
			continue
		}
		w := r.named(p.name())
		known := w.median(func(r Run) float64 { return r.Known / max(r.Nodes, 1) })
		text += fmt.Sprintf("| %d | %d | %s | %s | %s | %.1f %% | %s | %s |\n", p.nodes, p.devices, p.occupancy, p.shape,
			digits(w.median(func(r Run) float64 { return r.Nodes })), 100*known,
			digits(w.median(func(r Run) float64 { return r.Steps })), digits(w.median(func(r Run) float64 { return r.Evaluations })))
	}
	return text
}

// upstreamNames are upstream's workloads that were measured with both plugins.
func (r *Results) upstreamNames() []string {
	names := map[string]bool{}
	for _, w := range r.Workloads {
		if name, ours := strings.CutSuffix(w.Name, "/celset"); ours && r.named(name+"/upstream") != nil {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (r *Results) upstreamRatios(speed func(Run) float64) (throughputs, processors []float64) {
	for _, name := range r.upstreamNames() {
		ours, theirs := r.named(name+"/celset"), r.named(name+"/upstream")
		throughputs = append(throughputs, ratio(ours, theirs, speed, false))
		processors = append(processors, ratio(ours, theirs, processor, true))
	}
	return throughputs, processors
}

func (r *Results) upstreamTable(speed func(Run) float64) string {
	text := "| workload | pods/s, upstream | celset | attempt p99, ms, upstream | celset | CPU a pod, ms, upstream | celset | throughput | processor time |\n" +
		"|---|---|---|---|---|---|---|---|---|\n"
	throughputs, processors := r.upstreamRatios(speed)
	p99 := func(r Run) float64 { return r.Attempt.P99 }
	for i, name := range r.upstreamNames() {
		theirs, ours := r.named(name+"/upstream"), r.named(name+"/celset")
		text += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name, digits(theirs.median(speed)), digits(ours.median(speed)),
			digits(theirs.median(p99)), digits(ours.median(p99)), digits(theirs.median(processor)), digits(ours.median(processor)),
			times(throughputs[i]), times(processors[i]))
	}
	return text
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// times is a ratio, a dash if there is none.
func times(x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", x)
}

// digits has three that matter.
func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case math.Abs(x) >= 100:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
