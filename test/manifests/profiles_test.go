// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

const (
	stock                = "default-scheduler"
	plugin               = "DynamicResourcesCEL"
	scorer               = "DynamicResourcesCELPreference"
	inPlace              = "DynamicResources"
	nodeSets, placements = "TopologyPlacementGeneratorCEL", "TopologyPlacementGenerator"
)

// TestAllProfilesAreGuarded checks that every profile of a scheduler has our plugin. A profile without the plugin's limits
// could delay the pods of other profiles.
func TestAllProfilesAreGuarded(t *testing.T) {
	for overlay, want := range map[string]map[string]configv1alpha1.AllocatorMode{
		"default-scheduler": {stock: configv1alpha1.AllocatorUpstream, "celset-scheduler": configv1alpha1.AllocatorConstrained},
		"second-scheduler":  {"celset-scheduler": configv1alpha1.AllocatorConstrained},
	} {
		t.Run(overlay, func(t *testing.T) {
			got := map[string]configv1alpha1.AllocatorMode{}
			shares := 0
			for _, profile := range schedulerConfig(t, rendered(t, "overlays/"+overlay)).Profiles {
				plugins := profile.Plugins
				require.NotNil(t, plugins, *profile.SchedulerName)
				require.Equal(t, []string{plugin, scorer, nodeSets}, names(plugins.MultiPoint.Enabled))
				require.EqualValues(t, 3, *plugins.MultiPoint.Enabled[1].Weight, "docs/preferences.md#which-node")
				require.Equal(t, []string{inPlace, placements}, names(plugins.MultiPoint.Disabled))
				// Our plugin must run before DefaultPreemption, like upstream's plugin.
				require.Equal(t, []string{plugin}, names(plugins.PostFilter.Enabled))
				require.Equal(t, []string{plugin}, names(plugins.PodGroupPostFilter.Enabled))
				require.Len(t, profile.PluginConfig, 1)
				require.Equal(t, plugin, profile.PluginConfig[0].Name)
				args, err := configv1alpha1.DecodeArgs(profile.PluginConfig[0].Args.Raw)
				require.NoError(t, err)
				got[*profile.SchedulerName] = args.Allocator
				if args.Share != nil && args.BackOff != nil {
					shares++
				}
			}
			require.Equal(t, want, got)
			require.Equal(t, 1, shares, "share and backOff are for the whole scheduler")
		})
	}
}

func names(plugins []schedulerconfig.Plugin) []string {
	var result []string
	for _, plugin := range plugins {
		result = append(result, plugin.Name)
	}
	return result
}

// schedulerConfig returns the configuration of an overlay's scheduler.
func schedulerConfig(t *testing.T, objects []*unstructured.Unstructured) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && strings.HasPrefix(object.GetName(), "celset-scheduler-config") {
			content, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
			require.NoError(t, err)
			require.True(t, found)
			config := &schedulerconfig.KubeSchedulerConfiguration{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(content), config))
			return config
		}
	}
	require.Fail(t, "no configuration of a scheduler")
	return nil
}
