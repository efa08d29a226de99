// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"flag"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"github.com/celset/celset/internal/testing/cases"
)

// A stopwatch measures a workload from its creation until stop is called. It measures counters, processor time and memory,
// because scheduler_perf collects only histograms.
type stopwatch struct {
	start             time.Time
	cpu, allocatedMiB float64
	values            map[string]float64
}

func newStopwatch() (*stopwatch, error) {
	values, err := read()
	runtime.GC()
	return &stopwatch{start: time.Now(), cpu: cpuSeconds(), allocatedMiB: memory(allocated), values: values}, err
}

// perPod maps metrics of ours, with a label value, to the unit under which the benchmark reports them per pod.
var perPod = map[string]string{
	"celset_scheduler_allocation_steps count":           "nodes/pod", // number of nodes on which the allocator searched
	"celset_scheduler_cache_requests_total answers hit": "known/pod", // number of nodes whose result was in the cache
	"celset_scheduler_allocation_steps sum":             "steps/pod",
	"celset_scheduler_constraint_evaluations_total set": "evaluations/pod",
	victims: "victims/pod",
}

// stop reports the measurements. Processor time, unlike throughput, depends little on other load. Processor time and memory are
// of the whole process, which contains the scheduler, the API server and the controllers. The heap is measured after a garbage
// collection.
func (s *stopwatch) stop(b *testing.B) error {
	seconds, cpu, allocatedMiB := time.Since(s.start).Seconds(), cpuSeconds()-s.cpu, memory(allocated)-s.allocatedMiB
	values, err := read()
	if err != nil {
		return err
	}
	pods := values[attempts] - s.values[attempts]
	b.ReportMetric(pods/seconds, "pods/s")
	b.ReportMetric(1000*cpu/pods, "cpu-ms/pod")
	b.ReportMetric(allocatedMiB/pods, "MiB/pod")
	for name, unit := range perPod {
		if count := values[name] - s.values[name]; count > 0 {
			b.ReportMetric(count/pods, unit)
		}
	}
	runtime.GC()
	b.ReportMetric(memory(inUse), "heap-MiB")
	return nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // Getrusage can't fail for the own process
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func allocated(m *runtime.MemStats) uint64 { return m.TotalAlloc }
func inUse(m *runtime.MemStats) uint64     { return m.HeapAlloc }

func memory(of func(*runtime.MemStats) uint64) float64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(of(&memory)) / (1 << 20)
}

// attempts is the key, in the result of read, of the number of scheduled pods.
const attempts = "scheduler_schedule_attempts_total scheduled"

// named are the label values that get separate sums in the result of read.
var named = []string{"scheduled", "answers", "hit", "set"}

// read returns the values of all metrics; for a histogram, sum and count. If a label value is in named, it is a part of the
// key. Samples that differ in other labels are added up.
func read() (map[string]float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := family.GetName()
			for _, label := range metric.GetLabel() {
				if slices.Contains(named, label.GetValue()) {
					key += " " + label.GetValue()
				}
			}
			if h := metric.GetHistogram(); h != nil {
				values[family.GetName()+" sum"] += h.GetSampleSum()
				values[family.GetName()+" count"] += float64(h.GetSampleCount())
			} else {
				values[key] += metric.GetCounter().GetValue()
			}
		}
	}
	return values, err
}

// onMarks makes scheduler_perf call do after each createNodes operation. mark is the number of these operations in the workload
// so far. To mark the beginning and end of a measurement, workloads create zero nodes, because scheduler_perf has no other
// hook.
func onMarks(do func(tCtx ktesting.TContext, w *perf.Workload, nodes *corev1.NodeList, mark int) error) perf.SchedulerPerfOption {
	calls := map[string]int{}
	return perf.WithNodeUpdateFn(func(tCtx ktesting.TContext, _ *scheduler.Scheduler, w *perf.Workload, nodes *corev1.NodeList) error {
		mark := calls[tCtx.Name()]
		if calls[tCtx.Name()]++; mark == 0 {
			tCtx.Cleanup(func() { delete(calls, tCtx.Name()) })
		}
		return do(tCtx, w, nodes, mark)
	})
}

// measured returns an option that creates devices when the nodes exist, calls ready, and measures between the next two marks.
func measured(ready func(tCtx ktesting.TContext) error) perf.SchedulerPerfOption {
	var watch *stopwatch
	return onMarks(func(tCtx ktesting.TContext, w *perf.Workload, nodes *corev1.NodeList, mark int) (err error) {
		switch mark {
		case 0:
			if _, err = occupy(tCtx, w, nodes); err == nil && ready != nil {
				err = ready(tCtx)
			}
		case 1:
			watch, err = newStopwatch()
		default:
			err = watch.stop(tCtx.TB().(*testing.B))
		}
		return err
	})
}

// benchmark runs the workloads of a configuration. It selects the label "performance", or the labels in the flag
// -perf-scheduling-label-filter.
func benchmark(b *testing.B, config, topic string, options ...perf.SchedulerPerfOption) {
	b.Helper()
	require.NoError(b, flag.Set("data-items-dir", b.TempDir()), "what it keeps besides nobody reads")
	require.NoError(b, flag.Set("test.benchtime", "1x"), "the first run counts: a second would take as long")
	if !strings.Contains(perf.PerfSchedulingLabelFilter, "performance") {
		b.Logf("only workloads labelled %s", perf.PerfSchedulingLabelFilter)
	}
	perf.RunBenchmarkPerfScheduling(b, config, topic, registry(), options...)
}

// check runs the workloads of a configuration with the label "short", and returns their number. All pods must get their
// devices, and no device may be in two claims. If marks is not nil, check calls it at each mark with the increase of the
// metrics since the nodes exist.
func check(t *testing.T, config string, ready func(ktesting.TContext) error, marks func(tCtx ktesting.TContext, mark int, since func(name string) float64)) (ran int) {
	t.Helper()
	cases.OnlyNightly(t, "runs workloads on a whole scheduler, minutes")
	perf.TestSchedulingLabelFilter = "short"
	var before map[string]float64
	perf.RunIntegrationPerfScheduling(t, config, withRegistry(t, registry()), onMarks(
		func(tCtx ktesting.TContext, w *perf.Workload, nodes *corev1.NodeList, mark int) error {
			values, err := read()
			if err != nil {
				return err
			}
			if mark > 0 {
				if marks != nil {
					marks(tCtx, mark, func(name string) float64 { return values[name] - before[name] })
				}
				return nil
			}
			ran++
			before = values
			mesh, err := occupy(tCtx, w, nodes)
			if err == nil && ready != nil {
				err = ready(tCtx)
			}
			if err != nil {
				return err
			}
			return keepLedger(tCtx, mesh)
		}))
	return ran
}
