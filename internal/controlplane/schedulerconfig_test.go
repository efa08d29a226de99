// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestLocalSchedulerConfig(t *testing.T) {
	for name, test := range map[string]struct {
		in, want, err string
	}{
		"default": {
			in: defaultSchedulerConfig,
			want: `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /k}
leaderElection: {leaderElect: false}`,
		},
		"a placeholder is replaced and the rest kept": {
			in: `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: REPLACED, qps: 300}
profiles:
- schedulerName: celset-scheduler
  pluginConfig: [{name: P, args: {maxEvaluations: 9007199254740993}}]`,
			want: `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /k, qps: 300}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: celset-scheduler
  pluginConfig: [{name: P, args: {maxEvaluations: 9007199254740993}}]`,
		},
		"leader election that is asked for": {
			in: `
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 3s}`,
			want: `
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /k}
leaderElection: {leaderElect: true, leaseDuration: 3s}`,
		},
		"leader election of which only details are given": {
			in: `
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 3s}`,
			want: `
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /k}
leaderElection: {leaderElect: false, leaseDuration: 3s}`,
		},
		"empty":                {in: "", err: "kind is <nil>, want KubeSchedulerConfiguration"},
		"another kind":         {in: "kind: Pod", err: "kind is Pod"},
		"no object":            {in: "- a", err: "cannot unmarshal array"},
		"no YAML":              {in: "{", err: "scheduler configuration"},
		"a field twice":        {in: "kind: KubeSchedulerConfiguration\nkind: Pod", err: `key "kind" already set`},
		"no object to put in":  {in: "kind: KubeSchedulerConfiguration\nclientConnection: 1", err: "set clientConnection.kubeconfig"},
		"no object to look in": {in: "kind: KubeSchedulerConfiguration\nleaderElection: 1", err: "leaderElection.leaderElect"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := localSchedulerConfig([]byte(test.in), "/k")
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			want, err := yaml.YAMLToJSON([]byte(test.want))
			require.NoError(t, err)
			gotJSON, err := yaml.YAMLToJSON(got)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(want), string(gotJSON)))
		})
	}
}

func TestSchedulerConfigSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("from file"), 0o600))
	for name, test := range map[string]struct {
		options         SchedulerOptions
		source, content string
		err             string
	}{
		"none":    {source: "default configuration", content: defaultSchedulerConfig},
		"file":    {options: SchedulerOptions{ConfigFile: file}, source: file, content: "from file"},
		"bytes":   {options: SchedulerOptions{Config: []byte("bytes")}, source: "Config", content: "bytes"},
		"both":    {options: SchedulerOptions{ConfigFile: file, Config: []byte("b")}, err: "both ConfigFile and Config"},
		"missing": {options: SchedulerOptions{ConfigFile: file + "x"}, err: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			source, content, err := schedulerConfigSource(test.options)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.source, source)
			require.Equal(t, test.content, string(content))
		})
	}
}
