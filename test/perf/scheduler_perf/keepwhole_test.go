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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/cases"
)

const keepWholeFile = "keepwhole-config.yaml"

// outcomes is the beginning of the names of our counters of preferences.
const outcomes = "celset_preference_outcomes_total"

// variant is the configuration in manifests/scheduler with an argument more for our profile.
type variant struct {
	name, argument, value string
	// plain is for pods without a CEL constraint: to those with one it is the same as the first.
	plain bool
}

// variants run in this order. The second has our allocator serve pods without constraints, as the last
// does.
var variants = []variant{
	{name: "first"},
	{name: "all", argument: "allocator", value: "All", plain: true},
	{name: "keepwhole", argument: "defaultPreference", value: "KeepWhole"},
}

// config writes the configuration into a folder.
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

// variantConfig writes a configuration of scheduler_perf in which each workload is there once for
// each variant, named <kind>/<workload>/<variant>/all.
func variantConfig(into, kind string, variants []variant) (string, error) {
	content, err := os.ReadFile(keepWholeFile)
	if err != nil {
		return "", err
	}
	var cases, made []object
	if err := yaml.Unmarshal(content, &cases); err != nil {
		return "", fmt.Errorf("%s: %w", keepWholeFile, err)
	}
	for _, one := range cases {
		for _, w := range one["workloads"].([]any) {
			for _, v := range variants {
				workload := maps.Clone(w.(object))
				name := workload["name"].(string)
				if v.plain && !strings.HasSuffix(name, "_count") {
					continue
				}
				next := maps.Clone(one)
				next["name"] = fmt.Sprintf("%s/%s/%s", kind, name, v.name)
				if next["schedulerConfigPath"], err = v.config(into); err != nil {
					return "", err
				}
				workload["name"] = "all"
				next["workloads"] = []any{workload}
				made = append(made, next)
			}
		}
	}
	content, err = yaml.Marshal(made)
	if err != nil {
		return "", err
	}
	path := filepath.Join(into, keepWholeFile)
	return path, os.WriteFile(path, content, 0o600)
}

// BenchmarkPerfSchedulingKeepWhole runs the same pods with and without KeepWhole.
func BenchmarkPerfSchedulingKeepWhole(b *testing.B) {
	dir := resultsDir(b)
	setResults(b, dir)
	config, err := variantConfig(b.TempDir(), "KeepWhole", variants)
	require.NoError(b, err)
	perf.RunBenchmarkPerfScheduling(b, config, "celset_keepwhole", registry(), perf.WithNodeUpdateFn(occupyAndMeasure(dir)))
}

// TestKeepWhole runs the workloads labelled "short": pods get what they ask for with each variant, and
// preferences are asked with the one that has them only.
func TestKeepWhole(t *testing.T) {
	cases.OnlyNightly(t, "runs workloads on a whole scheduler, minutes")
	perf.TestSchedulingLabelFilter = "short"
	config, err := variantConfig(t.TempDir(), "KeepWhole", variants)
	require.NoError(t, err)
	before := map[string]float64{}
	ran := 0
	perf.RunIntegrationPerfScheduling(t, config, withRegistry(t, registry()), perf.WithNodeUpdateFn(
		func(tCtx ktesting.TContext, _ *scheduler.Scheduler, w *perf.Workload, nodes *corev1.NodeList) error {
			values, err := read()
			if err != nil {
				return err
			}
			if isFirst(tCtx) {
				before = values
				mesh, err := occupy(tCtx, w, nodes)
				if err != nil {
					return err
				}
				return keepLedger(tCtx, mesh)
			}
			preferred := 0.0
			for name, value := range values {
				if strings.HasPrefix(name, outcomes) {
					preferred += value - before[name]
				}
			}
			ran++
			if calls[tCtx.Name()] == 2 { // nothing was scheduled yet
				require.Zero(tCtx, preferred)
				return nil
			}
			require.Equal(tCtx, strings.Contains(tCtx.Name(), "/keepwhole/"), preferred > 0, "%v times a preference was asked", preferred)
			return nil
		}))
	require.Equal(t, 2*(3+2), ran, "a mark before and one after each")
}
