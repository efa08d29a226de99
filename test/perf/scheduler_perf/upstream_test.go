// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"sigs.k8s.io/yaml"
)

// topics are the folders with upstream's DRA workloads.
var topics = []string{
	".", "compatibilitygroups", "consumablecapacity", "devicetaints", "extendedresource", "extendedresource/scoring",
	"listattributes", "partitionabledevices", "prioritizedlist", "workloadresourceclaims",
}

// gangTopics are the folders with upstream's workloads that have PodGroups.
var gangTopics = []string{"basicscheduling", "gangscheduling", "tas"}

// gangGates are the feature gates for workloads with PodGroups.
var gangGates = object{"DRACELDeviceConstraint": true, "CelsetNodeSetConstraint": true, "GenericWorkload": true, "TopologyAwareWorkloadScheduling": true}

// patience is the limit for scheduling the pods of a workload. The largest one schedules 7,990 pods with consumable capacity on
// 1,000 nodes before the measurement. Upstream's plugin may take longer than the ten minutes that scheduler_perf allows.
const patience = 25 * time.Minute

// The plugins that run upstream's workloads.
const (
	upstreamPlugin = "upstream"
	ourPlugin      = "celset"
)

// object is a mapping in a YAML file.
type object = map[string]any

// BenchmarkPerfSchedulingUpstream runs upstream's own DRA workloads alternately with upstream's plugin and with ours. Their names
// are <test case>/<workload>/plugin=<plugin>/all.
func BenchmarkPerfSchedulingUpstream(b *testing.B) {
	runInPairs(b, filepath.Join(upstreamDir(b), "dra"), topics, pairs{gates: object{}, chosen: func(string) bool { return true }})
}

// BenchmarkPerfSchedulingUpstreamGangs runs upstream's workloads with PodGroups, alternately with upstream's plugins and with
// ours. The PodGroups have no constraints.
func BenchmarkPerfSchedulingUpstreamGangs(b *testing.B) {
	runInPairs(b, filepath.Join(upstreamDir(b), "podgroup"), gangTopics, pairs{gates: gangGates, chosen: func(string) bool { return true }})
}

// reported is the part of a test case that selects the metrics to report, the same as in our own configurations.
var reported = object{"metrics": object{
	"scheduler_scheduling_attempt_duration_seconds": []any{object{"label": "result", "values": []any{"scheduled"}}},
}}

// runInPairs runs the test cases that twice selects from upstream's folders. root is the folder of upstream's workloads.
func runInPairs(b *testing.B, root string, topics []string, twice pairs) {
	b.Helper()
	var err error
	twice.our, err = filepath.Abs(filepath.Join("config", "all.yaml"))
	require.NoError(b, err)
	for _, topic := range topics {
		b.Chdir(filepath.Join(root, topic)) // paths of templates are relative to this folder
		twice.into, twice.begin = b.TempDir(), map[string]int{}
		config, err := expanded(configFile, twice.into, twice.of)
		require.NoError(b, err, topic)
		if config == "" {
			continue
		}
		benchmark(b, config, "upstream_"+strings.ReplaceAll(topic, "/", "_"), twice.measure(), perf.WithPodsSchedulingTimeout(patience))
	}
}

// upstreamDir returns the folder of upstream's workloads in the module that go.mod requires.
func upstreamDir(tb testing.TB) string {
	tb.Helper()
	dir, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	require.NoError(tb, err)
	return filepath.Join(strings.TrimSpace(string(dir)), "test", "integration", "scheduler_perf")
}

// pairs writes configurations that contain each of upstream's workloads twice: with upstream's plugin and with ours.
type pairs struct {
	// our is the path of the scheduler configuration with our plugin. into is the folder for the written files.
	our, into string
	// begin maps a test case to the number of its createNodes operations before the measurement.
	begin map[string]int
	// gates are the feature gates that are set for our plugin.
	gates object
	// chosen reports whether the test case with the name runs.
	chosen func(name string) bool
}

// of returns a workload in two versions, one for each plugin. The result is empty if the workload schedules no pods, or does
// not have the label "performance".
func (p pairs) of(one, workload object) (made []object, err error) {
	operations, begin := marked(one["workloadTemplate"].([]any))
	labels, _ := workload["labels"].([]any)
	if operations == nil || !slices.Contains(labels, any("performance")) || !p.chosen(one["name"].(string)) {
		return nil, nil
	}
	for _, plugin := range []string{upstreamPlugin, ourPlugin} {
		name := fmt.Sprintf("%s/%s/plugin=%s", one["name"], workload["name"], plugin)
		next := object{"name": name, "workloadTemplate": operations, "metricsCollectorConfig": reported}
		if plugin == ourPlugin {
			next["featureGates"] = p.gatesOver(one["featureGates"])
			if next["schedulerConfigPath"], err = p.config(one["schedulerConfigPath"]); err != nil {
				return nil, err
			}
		}
		p.begin[name] = begin
		made = append(made, next)
	}
	return made, nil
}

// marked adds a createNodes operation for zero nodes before and after the measurement, so that onMarks calls its function
// there. It returns nil if the workload measures no pods.
func marked(operations []any) (all []any, begin int) {
	mark := object{"opcode": "createNodes", "count": 0}
	measured := false
	for _, o := range operations {
		operation := o.(object)
		switch {
		case operation["opcode"] == "createPods" && operation["collectMetrics"] == true:
			all = append(all, mark, operation, mark)
			measured = true
			continue
		case operation["opcode"] == "createNodes" && !measured:
			begin++
		}
		all = append(all, operation)
	}
	if !measured {
		return nil, 0
	}
	return all, begin
}

// gatesOver returns p.gates with the gates of a test case. The test case's values take precedence.
func (p pairs) gatesOver(theirs any) object {
	all := maps.Clone(p.gates)
	if some, ok := theirs.(object); ok {
		maps.Copy(all, some)
	}
	return all
}

// config writes our scheduler configuration with a test case's settings for other plugins, and returns the path.
func (p pairs) config(theirs any) (string, error) {
	path, ok := theirs.(string)
	if !ok {
		return p.our, nil
	}
	var profiles [2]object
	for i, file := range []string{p.our, path} {
		var err error
		if profiles[i], err = onlyProfile(file); err != nil {
			return "", err
		}
	}
	settings := slices.Concat(profiles[0]["pluginConfig"].([]any), profiles[1]["pluginConfig"].([]any))
	profiles[0]["pluginConfig"] = settings
	content, err := yaml.Marshal(object{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": []any{profiles[0]},
	})
	if err != nil {
		return "", err
	}
	path = filepath.Join(p.into, "scheduler.yaml")
	return path, os.WriteFile(path, content, 0o600)
}

func onlyProfile(file string) (object, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct{ Profiles []object }
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(config.Profiles) != 1 {
		return nil, errors.New(file + ": not one profile")
	}
	return config.Profiles[0], nil
}

// measure returns an option that starts a stopwatch at the first mark of a workload, and stops it at the second.
func (p pairs) measure() perf.SchedulerPerfOption {
	var watch *stopwatch
	return onMarks(func(tCtx ktesting.TContext, _ *perf.Workload, _ *corev1.NodeList, mark int) (err error) {
		_, name, _ := strings.Cut(tCtx.Name(), "/")
		switch mark - p.begin[strings.TrimSuffix(name, "/all")] {
		case 0:
			watch, err = newStopwatch()
		case 1:
			err = watch.stop(tCtx.TB().(*testing.B))
		}
		return err
	})
}

func TestUpstreamWorkloadsComeInPairs(t *testing.T) {
	ours, err := filepath.Abs(filepath.Join("config", "all.yaml"))
	require.NoError(t, err)
	root := upstreamDir(t)
	total, preemption := 0, 0
	folders := slices.Clone(preemptionTopics)
	for _, topic := range topics {
		folders = append(folders, filepath.Join("dra", topic))
	}
	for _, topic := range gangTopics {
		folders = append(folders, filepath.Join("podgroup", topic))
	}
	for _, folder := range folders {
		t.Chdir(filepath.Join(root, folder))
		twice := pairs{our: ours, into: t.TempDir(), begin: map[string]int{}, gates: preemptionGates, chosen: func(string) bool { return true }}
		path, err := expanded(configFile, twice.into, twice.of)
		require.NoError(t, err)
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		var cases []object
		require.NoError(t, yaml.Unmarshal(content, &cases))
		require.Len(t, twice.begin, len(cases))
		for i := 0; i < len(cases); i += 2 {
			name, other := cases[i]["name"].(string), cases[i+1]["name"].(string)
			require.Equal(t, strings.TrimSuffix(name, upstreamPlugin), strings.TrimSuffix(other, ourPlugin))
			require.Equal(t, cases[i]["workloads"], cases[i+1]["workloads"])
			config, err := onlyProfile(cases[i+1]["schedulerConfigPath"].(string))
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(config["plugins"]), "DynamicResourcesCEL")
			require.Contains(t, fmt.Sprint(config["pluginConfig"]), "allocator:All")
			require.Subset(t, cases[i+1]["featureGates"], preemptionGates)
			if theirs, ok := cases[i]["schedulerConfigPath"]; ok {
				profile, err := onlyProfile(theirs.(string))
				require.NoError(t, err)
				require.Subset(t, config["pluginConfig"], profile["pluginConfig"])
			}
		}
		total += len(cases)
		if slices.Contains(preemptionTopics, folder) {
			preemption += len(cases)
		}
	}
	require.Greater(t, total, 50)
	require.Greater(t, preemption, 20)
}
