// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/plugin"
)

const keepWholeFile = "keepwhole-config.yaml"

// outcomes is the metric that counts searches for preferences, by outcome.
const outcomes = "celset_scheduler_preference_searches_total"

// A variant is the configuration in manifests/scheduler, with an additional argument of our plugin.
type variant struct {
	name, argument, value string
	// plain is set if only pods without a CEL constraint run with this variant. For pods with a constraint it does not differ
	// from the first variant.
	plain bool
}

// variants are the variants, in the order of their runs. The second and the last variant use our allocator for all pods, with
// and without constraints.
var variants = []variant{
	{name: "first"},
	{name: "all", argument: "allocator", value: "All", plain: true},
	{name: "keepwhole", argument: "defaultPreference", value: "KeepWhole"},
}

// config writes the scheduler configuration of the variant into the folder into, and returns the path.
func (v variant) config(into string) (string, error) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "manifests", "scheduler", "config.yaml"))
	if err != nil {
		return "", err
	}
	var config object
	if err := yaml.Unmarshal(content, &config); err != nil {
		return "", err
	}
	for _, p := range config["profiles"].([]any) {
		profile := p.(object)
		if profile["schedulerName"] != "celset-scheduler" {
			continue
		}
		if v.argument != "" {
			profile["pluginConfig"].([]any)[0].(object)["args"].(object)[v.argument] = v.value
		}
		if content, err = yaml.Marshal(config); err != nil {
			return "", err
		}
		path := filepath.Join(into, v.name+".yaml")
		return path, os.WriteFile(path, content, 0o600)
	}
	return "", errors.New("manifests/scheduler/config.yaml: no profile celset-scheduler")
}

// variantConfig writes a scheduler_perf configuration with each workload once for each variant. The names are
// <kind>/<workload>/config=<variant>/all.
func variantConfig(tb testing.TB, kind string, variants []variant) string {
	tb.Helper()
	into := tb.TempDir()
	path, err := expanded(keepWholeFile, into, func(_, workload object) (made []object, err error) {
		for _, v := range variants {
			name := workload["name"].(string)
			if v.plain && !strings.HasSuffix(name, "shape=count") {
				continue
			}
			next := object{"name": fmt.Sprintf("%s/%s/config=%s", kind, name, v.name)}
			if next["schedulerConfigPath"], err = v.config(into); err != nil {
				return nil, err
			}
			made = append(made, next)
		}
		return made, nil
	})
	require.NoError(tb, err)
	return path
}

// expanded writes a scheduler_perf configuration, and returns its path. For each workload in file, it contains a test case for
// each object that variants returns. Without such objects, the path is empty.
func expanded(file, into string, variants func(testCase, workload object) ([]object, error)) (path string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var cases, all []object
	if err := yaml.Unmarshal(content, &cases); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	for _, one := range cases {
		for _, w := range one["workloads"].([]any) {
			made, err := variants(one, w.(object))
			if err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
			for _, different := range made {
				next, workload := maps.Clone(one), maps.Clone(w.(object))
				maps.Copy(next, different)
				workload["name"] = "all"
				delete(workload, "threshold") // thresholds are for the machines of upstream's CI
				next["workloads"] = []any{workload}
				all = append(all, next)
			}
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	if content, err = yaml.Marshal(all); err != nil {
		return "", err
	}
	path = filepath.Join(into, filepath.Base(file))
	return path, os.WriteFile(path, content, 0o600)
}

// BenchmarkPerfSchedulingKeepWhole runs the same pods with and without the preference KeepWhole.
func BenchmarkPerfSchedulingKeepWhole(b *testing.B) {
	benchmark(b, variantConfig(b, "KeepWhole", variants), "celset_keepwhole", measured(nil))
}

// TestKeepWhole runs the workloads with the label "short" with each variant. The scheduler must search for preferences only in
// the variant with preferences.
func TestKeepWhole(t *testing.T) {
	require.Equal(t, 3+2, check(t, variantConfig(t, "KeepWhole", variants), nil, func(tCtx ktesting.TContext, mark int, since func(string) float64) {
		prefers := mark > 1 && strings.Contains(tCtx.Name(), "/config=keepwhole/")
		require.Equal(tCtx, prefers, since(outcomes) > 0, "%v times a preference was asked", since(outcomes))
	}))
}

const preemptionFile = "preemption-config.yaml"

// victims is the metric that counts the pods that were evicted for devices.
const victims = "celset_scheduler_device_preemption_victims_total"

// preemptionTopics are the folders of upstream's preemption workloads.
var preemptionTopics = []string{"default_preemption", "workload_preemption"}

// preemptionGates are the feature gates that let our plugin evict pods for devices.
var preemptionGates = object{string(plugin.DRACELDeviceConstraint): true, string(plugin.CelsetDevicePreemption): true}

// BenchmarkPerfSchedulingPreemption runs pods that evict other pods for devices.
func BenchmarkPerfSchedulingPreemption(b *testing.B) {
	benchmark(b, preemptionFile, "celset_preemption", measured(nil))
}

// BenchmarkPerfSchedulingUpstreamPreemption runs upstream's own preemption workloads, which have no devices, alternately with
// upstream's plugins and with ours.
func BenchmarkPerfSchedulingUpstreamPreemption(b *testing.B) {
	runInPairs(b, upstreamDir(b), preemptionTopics, pairs{
		gates: preemptionGates, chosen: func(name string) bool { return strings.Contains(name, "Preemption") },
	})
}

// TestPreemption runs the preemption workloads with the label "short". After the first mark (see onMarks), pods of a high
// priority are created. If no devices are free, other pods must be evicted.
func TestPreemption(t *testing.T) {
	require.Equal(t, 3, check(t, preemptionFile, nil, func(tCtx ktesting.TContext, mark int, since func(string) float64) {
		evicts := mark > 1 && !strings.Contains(tCtx.Name(), "/inuse=free/")
		require.Equal(tCtx, evicts, since(victims) > 0, "%v pods are evicted", since(victims))
	}))
}
