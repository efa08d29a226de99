// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

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
	benchmark(b, preemptionFile, "celset_preemption", measured(nil))
}

// BenchmarkPerfSchedulingUpstreamPreemption runs upstream's own preemption workloads, which know no
// devices, with upstream's plugins and with ours, in turn.
func BenchmarkPerfSchedulingUpstreamPreemption(b *testing.B) {
	runInPairs(b, upstreamDir(b), preemptionTopics, pairs{
		gates: preemptionGates, chosen: func(name string) bool { return strings.Contains(name, "Preemption") },
	})
}

// TestPreemption runs the workloads labelled "short": others are evicted where nothing else is free, for those
// of a high priority, of whom nobody is there at the first mark.
func TestPreemption(t *testing.T) {
	require.Equal(t, 3, check(t, preemptionFile, nil, func(tCtx ktesting.TContext, mark int, since func(string) float64) {
		evicts := mark > 1 && !strings.Contains(tCtx.Name(), "/inuse=free/")
		require.Equal(tCtx, evicts, since(victims) > 0, "%v pods are evicted", since(victims))
	}))
}
