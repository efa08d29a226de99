// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// countersFile has a line for each workload that ran, beside scheduler_perf's files.
const countersFile = "counters.jsonl"

// counters is what scheduler_perf does not collect: it knows histograms only.
type counters struct {
	// Name of the workload, as in the label "Name" of scheduler_perf's results, without the
	// namespace.
	Name string `json:"name"`
	// Values of our counters, and the sums and counts of our histograms, from the creation
	// of the nodes to the end. Labels follow the name.
	Values map[string]float64 `json:"values"`
	// HeapMiB is the heap of the process in the end, after a garbage collection: scheduler,
	// API server and the caches of both.
	HeapMiB float64 `json:"heapMiB"`
	// AllocatedMiB is what the process allocated.
	AllocatedMiB float64 `json:"allocatedMiB"`
}

// count writes the counters of a workload when it ends.
func count(tCtx ktesting.TContext, dir string) {
	before, err := read()
	tCtx.ExpectNoError(err, "read metrics")
	start := allocated()
	tCtx.Cleanup(func() {
		after, err := read()
		tCtx.ExpectNoError(err, "read metrics")
		for name := range after {
			after[name] -= before[name]
		}
		end := allocated()
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		_, name, _ := strings.Cut(tCtx.Name(), "/")
		line, err := json.Marshal(counters{name, after, float64(memory.HeapAlloc) / (1 << 20), end - start})
		tCtx.ExpectNoError(err, "write counters")
		file, err := os.OpenFile(filepath.Join(dir, countersFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		tCtx.ExpectNoError(err, "write counters")
		defer file.Close()
		_, err = file.Write(append(line, '\n'))
		tCtx.ExpectNoError(err, "write counters")
	})
}

func allocated() float64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.TotalAlloc) / (1 << 20)
}

// read returns the values of our metrics.
func read() (map[string]float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "celset_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := family.GetName()
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			if histogram := metric.GetHistogram(); histogram != nil {
				values[key+" sum"], values[key+" count"] = histogram.GetSampleSum(), float64(histogram.GetSampleCount())
			} else if counter := metric.GetCounter(); counter != nil {
				values[key] = counter.GetValue()
			}
		}
	}
	return values, nil
}

// resultsDir is where the results go, absolute; the test is skipped if it isn't given. A
// benchmark of whole schedulers takes minutes, so that it does not run along with others.
func resultsDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("CELSET_PERF_RESULTS")
	if dir == "" {
		tb.Skip("takes long: give a directory for the results in CELSET_PERF_RESULTS")
	}
	dir, err := filepath.Abs(dir)
	require.NoError(tb, err)
	require.NoError(tb, os.MkdirAll(dir, 0o755))
	return dir
}
