// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/plugin"
)

const preemptionFile = "preemption-config.yaml"

// victims is the name of the counter of pods that are evicted for devices.
const victims = "celset_device_preemption_victims_total"

// preemptionTopics are the folders of upstream's workloads in which pods are evicted for others.
var preemptionTopics = []string{"default_preemption", "workload_preemption"}

// preemptionGates are what has our plugin evict pods for devices.
var preemptionGates = object{string(plugin.DRACELDeviceConstraint): true, string(plugin.DRADevicePreemption): true}

// BenchmarkPerfSchedulingPreemption runs pods for whose devices others are evicted.
func BenchmarkPerfSchedulingPreemption(b *testing.B) {
	dir := resultsDir(b)
	setResults(b, dir)
	perf.RunBenchmarkPerfScheduling(b, preemptionFile, "celset_preemption", registry(), perf.WithNodeUpdateFn(occupyAndMeasure(dir)))
}

// BenchmarkPerfSchedulingUpstreamPreemption runs upstream's own preemption workloads, which know no
// devices, with upstream's plugins and with ours, in turn.
func BenchmarkPerfSchedulingUpstreamPreemption(b *testing.B) {
	runInPairs(b, upstreamDir(b), preemptionTopics, pairs{
		gates: preemptionGates, chosen: func(name string) bool { return strings.Contains(name, "Preemption") },
	})
}

// TestPreemption runs the workloads labelled "short": all pods get the set that they ask for, others are
// evicted where nothing else is free, and no device goes to two claims.
func TestPreemption(t *testing.T) {
	cases.OnlyNightly(t, "runs workloads on a whole scheduler, minutes")
	perf.TestSchedulingLabelFilter = "short"
	before := 0.0
	ran := 0
	perf.RunIntegrationPerfScheduling(t, preemptionFile, withRegistry(t, registry()), perf.WithNodeUpdateFn(
		func(tCtx ktesting.TContext, _ *scheduler.Scheduler, w *perf.Workload, nodes *corev1.NodeList) error {
			values, err := read()
			if err != nil {
				return err
			}
			if isFirst(tCtx) {
				before = values[victims]
				mesh, err := occupy(tCtx, w, nodes)
				if err != nil {
					return err
				}
				return keepLedger(tCtx, mesh)
			}
			if calls[tCtx.Name()] == 2 { // nobody of a high priority is there
				require.Zero(tCtx, values[victims]-before)
				return nil
			}
			ran++
			require.Equal(tCtx, !strings.Contains(tCtx.Name(), "_free_"), values[victims] > before, "%v pods are evicted", values[victims]-before)
			return nil
		}))
	require.Equal(t, 3, ran)
}
