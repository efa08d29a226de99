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

// outcomes is the counter of preference searches.
const outcomes = "celset_scheduler_preference_searches_total"

// A variant is the configuration in manifests/scheduler with an additional argument for our profile.
type variant struct {
	name, argument, value string
	// plain limits the variant to pods without a CEL constraint; for others it equals the first variant.
	plain bool
}

// variants run in this order. In the second and the last variant our allocator also serves pods without constraints.
var variants = []variant{
	{name: "first"},
	{name: "all", argument: "allocator", value: "All", plain: true},
	{name: "keepwhole", argument: "defaultPreference", value: "KeepWhole"},
}

// config writes the configuration into a folder and returns its path.
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

// variantConfig writes a configuration with each workload once for each variant, named <kind>/<workload>/config=<variant>/all.
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

// expanded writes a configuration of scheduler_perf and returns its path. Each workload of a file becomes a test case for each
// variation that variants returns. Without variations the path is empty.
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
				delete(workload, "threshold") // thresholds are for other machines
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

// BenchmarkPerfSchedulingKeepWhole runs the same pods with and without KeepWhole.
func BenchmarkPerfSchedulingKeepWhole(b *testing.B) {
	benchmark(b, variantConfig(b, "KeepWhole", variants), "celset_keepwhole", measured(nil))
}

// TestKeepWhole runs the workloads labelled "short" with each variant. Only the variant with preferences may use them.
func TestKeepWhole(t *testing.T) {
	require.Equal(t, 3+2, check(t, variantConfig(t, "KeepWhole", variants), nil, func(tCtx ktesting.TContext, mark int, since func(string) float64) {
		prefers := mark > 1 && strings.Contains(tCtx.Name(), "/config=keepwhole/")
		require.Equal(tCtx, prefers, since(outcomes) > 0, "%v times a preference was asked", since(outcomes))
	}))
}

const preemptionFile = "preemption-config.yaml"

// victims is the counter of pods that are evicted for devices.
const victims = "celset_scheduler_device_preemption_victims_total"

// preemptionTopics are the folders of upstream's preemption workloads.
var preemptionTopics = []string{"default_preemption", "workload_preemption"}

// preemptionGates make our plugin evict pods for devices.
var preemptionGates = object{string(plugin.DRACELDeviceConstraint): true, string(plugin.CelsetDevicePreemption): true}

// BenchmarkPerfSchedulingPreemption runs pods that evict others for devices.
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

// TestPreemption runs the workloads labelled "short". Pods of a high priority are created after the first mark. If no devices are
// free, pods are evicted for them.
func TestPreemption(t *testing.T) {
	require.Equal(t, 3, check(t, preemptionFile, nil, func(tCtx ktesting.TContext, mark int, since func(string) float64) {
		evicts := mark > 1 && !strings.Contains(tCtx.Name(), "/inuse=free/")
		require.Equal(tCtx, evicts, since(victims) > 0, "%v pods are evicted", since(victims))
	}))
}
