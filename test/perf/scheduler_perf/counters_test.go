// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// countersFile has a line for each workload that ran, beside scheduler_perf's files.
const countersFile = "counters.jsonl"

// counters is what scheduler_perf does not collect while pods are measured: it knows
// histograms only.
type counters struct {
	// Name of the workload, as in the label "Name" of scheduler_perf's results, without the
	// first part and the namespace.
	Name string `json:"name"`
	// Scheduled is the number of pods that got a node.
	Scheduled float64 `json:"scheduled"`
	// Seconds is how long that took, CPUSeconds the time for which the process had a
	// processor: scheduler, API server and controllers. Unlike the throughput it depends
	// little on what else the machine does.
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	// Values of our counters, and sums and counts of our histograms. Labels follow the name.
	Values map[string]float64 `json:"values"`
	// HeapMiB is the heap of the process in the end, after a garbage collection: scheduler,
	// API server and the caches of both. AllocatedMiB is what the process allocated.
	HeapMiB      float64 `json:"heapMiB"`
	AllocatedMiB float64 `json:"allocatedMiB"`
}

// stopwatch measures a workload from the time it is made until it is stopped.
type stopwatch struct {
	start             time.Time
	cpu, allocatedMiB float64
	values            map[string]float64
}

func newStopwatch() (*stopwatch, error) {
	values, err := read()
	if err != nil {
		return nil, err
	}
	runtime.GC()
	return &stopwatch{start: time.Now(), cpu: cpuSeconds(), allocatedMiB: allocatedMiB(), values: values}, nil
}

// stop appends what was counted to the file in dir.
func (s *stopwatch) stop(tCtx ktesting.TContext, dir string) error {
	c := counters{Seconds: time.Since(s.start).Seconds(), CPUSeconds: cpuSeconds() - s.cpu, AllocatedMiB: allocatedMiB() - s.allocatedMiB}
	values, err := read()
	if err != nil {
		return err
	}
	for name := range values {
		values[name] -= s.values[name]
	}
	c.Scheduled, c.Values = values[attempts], values
	delete(values, attempts)
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	c.HeapMiB = float64(memory.HeapAlloc) / (1 << 20)
	_, c.Name, _ = strings.Cut(tCtx.Name(), "/")
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, countersFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it can't fail for this process
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func allocatedMiB() float64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.TotalAlloc) / (1 << 20)
}

// attempts is the key of the number of pods that were scheduled.
const attempts = "scheduler_schedule_attempts_total"

// read returns the values of our metrics, and the number of pods scheduled so far.
func read() (map[string]float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, family := range families {
		ours := strings.HasPrefix(family.GetName(), "celset_")
		for _, metric := range family.GetMetric() {
			key, scheduled := family.GetName(), false
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
				scheduled = scheduled || label.GetValue() == "scheduled"
			}
			switch {
			case family.GetName() == attempts && scheduled:
				values[attempts] += metric.GetCounter().GetValue()
			case !ours:
			case metric.GetHistogram() != nil:
				values[key+" sum"], values[key+" count"] = metric.GetHistogram().GetSampleSum(), float64(metric.GetHistogram().GetSampleCount())
			case metric.GetCounter() != nil:
				values[key] = metric.GetCounter().GetValue()
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
