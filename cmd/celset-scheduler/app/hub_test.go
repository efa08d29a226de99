// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/celset/celset/plugin"
	"github.com/celset/celset/plugin/metrics"
)

func TestHubOptions(t *testing.T) {
	for want, o := range map[string]hubOptions{
		"": {}, "set both flags or neither": {kubeconfig: "hub"}, "neither": {cluster: "east"}, "--cluster-name=East: a lowercase": {kubeconfig: "hub", cluster: "East"},
	} {
		if err := o.validate(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	measured, err := metrics.New(compbase.NewKubeRegistry(), time.Now)
	require.NoError(t, err)
	profile := func(args string) config.KubeSchedulerProfile {
		return config.KubeSchedulerProfile{
			Plugins:      &config.Plugins{MultiPoint: config.PluginSet{Enabled: []config.Plugin{{Name: plugin.Name}}}},
			PluginConfig: []config.PluginConfig{{Name: plugin.Name, Args: &runtime.Unknown{Raw: []byte(`{"apiVersion": "config.celset.dev/v1alpha1", "kind": "DynamicResourcesCELArgs"` + args + `}`)}}},
		}
	}
	o := hubOptions{kubeconfig: "hub", cluster: "east"}
	p, err := o.publisher([]config.KubeSchedulerProfile{{}, profile("")}, measured)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, p.Interval)
	p, err = o.publisher([]config.KubeSchedulerProfile{profile(`, "fragmentationInterval": "2m"`), profile("")}, measured)
	require.NoError(t, err)
	require.Equal(t, 2*time.Minute, p.Interval)
	for name, profiles := range map[string][]config.KubeSchedulerProfile{
		"never": {profile(`, "fragmentationInterval": "0s"`)}, "not ours": {profile(`, "allocator": "Upstream"`)}, "none": {{}},
	} {
		_, err = o.publisher(profiles, measured)
		require.ErrorContains(t, err, "sets of devices are not counted", name)
	}
}
