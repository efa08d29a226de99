// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	update = flag.Bool("update", false, "write docs/performance.md")
	raw    = flag.String("raw", "", "directories with raw results, separated by commas, to condense before")
)

var (
	docs = filepath.Join("..", "..", "..", "docs")
	kept = filepath.Join(docs, "performance", "results.json")
	// keptVariants are of workloads that compare configurations, which may be measured by themselves.
	keptVariants = filepath.Join(docs, "performance", "keepwhole.json")
	keptEvicting = filepath.Join(docs, "performance", "preemption.json")
)

// TestPageIsUpToDate writes the page with -update, and otherwise checks that it is what the
// results say.
func TestPageIsUpToDate(t *testing.T) {
	if *raw != "" {
		results, err := Condense(strings.Split(*raw, ",")...)
		require.NoError(t, err)
		rest, variants, evicting := results.split()
		for path, measured := range map[string]*Results{kept: rest, keptVariants: variants, keptEvicting: evicting} {
			if len(measured.Workloads) == 0 {
				continue
			}
			before, err := Read(path)
			require.NoError(t, err)
			require.NoError(t, before.replaced(measured).Write(path))
		}
	}
	results, err := Read(kept)
	require.NoError(t, err)
	var beside Beside
	beside.Variants, err = Read(keptVariants)
	require.NoError(t, err)
	beside.Evicting, err = Read(keptEvicting)
	require.NoError(t, err)
	for name, log := range map[string]*string{"soak.log": &beside.Soak, "preemption.log": &beside.Churn} {
		content, err := os.ReadFile(filepath.Join(docs, "performance", name))
		require.NoError(t, err)
		*log = string(content)
	}
	page, plots := results.Page(beside)
	traces, err := ReadTraces(filepath.Join(docs, "performance", "trace.json"))
	require.NoError(t, err)
	fragmentation, more := traces.Page()
	maps.Copy(plots, more)
	files := map[string]string{filepath.Join(docs, "performance.md"): page, filepath.Join(docs, "trace.md"): fragmentation}
	for name, plot := range plots {
		files[filepath.Join(docs, "performance", name)] = plot
	}
	for path, want := range files {
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s is not what the results say: make perf-report", path)
	}
}

const raw1 = `{"version": "v1", "dataItems": [
 {"data": {"Average": 50, "Perc50": 51}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput", "Name": "BenchmarkPerfScheduling/Steady/100nodes_16devices_half_count/measured"}},
 {"data": {"Average": 40}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput", "Name": "BenchmarkPerfScheduling/Steady/100nodes_16devices_half_grid/measured"}},
 {"data": {"Perc50": 1, "Perc95": 2, "Perc99": 3}, "labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds", "result": "scheduled", "Name": "BenchmarkPerfScheduling/Steady/100nodes_16devices_half_grid/measured"}},
 {"data": {"Perc50": 7, "Perc95": 8, "Perc99": 9}, "labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds", "result": "error", "Name": "BenchmarkPerfScheduling/Steady/100nodes_16devices_half_grid/measured"}},
 {"data": {"Average": 30}, "labels": {"Metric": "SchedulingThroughput", "Name": "BenchmarkPerfSchedulingUpstream/Some/half/upstream/all/test"}},
 {"data": {"Average": 60}, "labels": {"Metric": "SchedulingThroughput", "Name": "BenchmarkPerfSchedulingUpstream/Some/half/celset/all/test"}}
]}`

const counted1 = `{"name": "Steady/100nodes_16devices_half_count", "scheduled": 100, "seconds": 2, "cpuSeconds": 1, "heapMiB": 30, "allocatedMiB": 50}
{"name": "Steady/100nodes_16devices_half_grid", "scheduled": 10, "seconds": 2, "cpuSeconds": 0.125, "heapMiB": 30, "allocatedMiB": 50, "values": {"celset_allocation_steps cel allocated sum": 30, "celset_allocation_steps cel allocated count": 100, "celset_allocation_steps cel no_fit count": 300, "celset_cache_hits_total answers": 390, "celset_constraint_evaluations_total set": 20, "celset_constraint_evaluations_total part": 99}}
{"name": "Some/half/celset/all", "scheduled": 10, "seconds": 2, "cpuSeconds": 0.125}
`

func condensed(t *testing.T) *Results {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "BenchmarkPerfScheduling_benchmark_celset_1.json"), []byte(raw1), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "counters.jsonl"), []byte(counted1), 0o600))
	results, err := Condense(dir, dir, t.TempDir())
	require.NoError(t, err)
	return results
}

func TestCondense(t *testing.T) {
	results := condensed(t)
	require.Len(t, results.Workloads, 4)
	require.NotEmpty(t, results.CPU)
	grid := results.named("Steady/100nodes_16devices_half_grid")
	require.Len(t, grid.Runs, 2)
	require.Equal(t, Run{
		Throughput: 40, Attempt: Percentiles{1, 2, 3}, Pods: 10, Seconds: 2, CPU: 12.5, Allocated: 5, HeapMiB: 30,
		Nodes: 40, Known: 39, Steps: 3, Evaluations: 2,
	}, grid.Runs[0])
	require.Equal(t, 12.5, results.named("Some/half/celset").median(processor))
	require.Equal(t, 60.0, results.named("Some/half/celset").median(throughput))

	path := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, results.Write(path))
	again, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, results, again)

	_, err = Condense(t.TempDir())
	require.ErrorContains(t, err, "there are no results")
}

func TestRatios(t *testing.T) {
	results := condensed(t)
	grid, count := results.named("Steady/100nodes_16devices_half_grid"), results.named("Steady/100nodes_16devices_half_count")
	require.Equal(t, 0.8, ratio(grid, count, throughput, false))
	require.Equal(t, 0.8, ratio(grid, count, processor, true)) // 10 ms compared with 12.5
	require.Zero(t, ratio(grid, nil, throughput, false))
	require.Zero(t, ratio(grid, &Workload{}, throughput, false))
	throughputs, _ := results.upstreamRatios(throughput)
	require.Equal(t, []float64{2}, throughputs)

	// Each run is compared with the one beside it.
	a := &Workload{Runs: []Run{{CPU: 10}, {CPU: 100}, {CPU: 30}}}
	b := &Workload{Runs: []Run{{CPU: 20}, {CPU: 100}, {CPU: 15}}}
	require.Equal(t, 1.0, ratio(a, b, processor, true))
}

func TestPlaces(t *testing.T) {
	for name, ok := range map[string]bool{
		"Steady/100nodes_16devices_half_grid": true, "Burst/5nodes_8devices_empty_count": true,
		"Some/half/celset": false, "KeepWhole/5nodes_8devices_half_count/first": false, "Steady/100nodes_16devices_half": false, "Steady/xnodes_16devices_half_grid": false,
	} {
		p, got := placeOf(name)
		require.Equal(t, ok, got, name)
		if ok {
			require.Equal(t, name, p.name())
		}
	}
}

func TestPageHasTheNumbers(t *testing.T) {
	page, plots := condensed(t).Page(Beside{Variants: &Results{}, Evicting: &Results{}, Soak: "1m0s all is well\n", Churn: "2m0s still\n"})
	require.Contains(t, page, "| 100 | 16 | half | grid | celset | 40.0 | 1.00 / 2.00 / 3.00 | 12.5 | 5.00 | 30.0 | 0.80 | 0.80 |\n")
	require.Contains(t, page, "| 100 | 16 | half | grid | 40.0 | 97.5 % | 3.00 | 2.00 |\n")
	require.Contains(t, page, "| Some/half | 30.0 | 60.0 |")
	require.Contains(t, page, "1m0s all is well")
	require.Contains(t, page, "2m0s still")
	require.Len(t, plots, 2)
	requirePlots(t, plots)
}

func requirePlots(t *testing.T, plots map[string]string) {
	t.Helper()
	for name, plot := range plots {
		decoder := xml.NewDecoder(strings.NewReader(plot))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
		}
		require.NotContains(t, plot, "NaN", name)
	}
}

func TestGrowth(t *testing.T) {
	workload := func(name string, pods, cpu float64) *Workload {
		return &Workload{Name: name, Runs: []Run{{Throughput: pods, CPU: cpu}}}
	}
	results := &Results{Workloads: []*Workload{
		workload("Steady/5000nodes_16devices_half_grid", 10, 60), workload("Steady/1000nodes_16devices_half_grid", 30, 50),
		workload("Steady/2000nodes_16devices_half_grid", 20, 55), workload("Steady/100nodes_16devices_half_grid", 40, 45),
		workload("Steady/1000nodes_16devices_half_match", 30, 50), workload("Steady/5000nodes_16devices_half_match", 15, 150),
		workload("Steady/5000nodes_16devices_half_count", 15, 150), workload("Burst/1000nodes_16devices_half_count", 15, 150),
		workload("Steady/1000nodes_64devices_half_count", 15, 150),
	}}
	_, table, _ := strings.Cut(results.growthTable(), "---|\n")
	require.Equal(t, strings.Join([]string{
		"| half | 16 | grid | celset | 100 to 5000 | x 4.00 | x 1.33 |",
		"| half | 16 | match | upstream | 1000 to 5000 | x 2.00 | x 3.00 |",
		"| half | 16 | grid | celset | 1000 to 5000 | x 3.00 | x 1.20 |",
		"| half | 16 | grid | celset | 2000 to 5000 | x 2.00 | x 1.09 |", "",
	}, "\n"), table)
}

// Without results the plots are empty.
func TestNoResults(t *testing.T) {
	page, plots := (&Results{}).Page(Beside{Variants: &Results{}, Evicting: &Results{}})
	require.Contains(t, page, "# Performance")
	for name, plot := range plots {
		require.NotContains(t, plot, "NaN", name)
	}
}
