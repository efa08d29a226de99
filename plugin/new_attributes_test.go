// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/internal/testing/simulation"
	"github.com/celset/celset/plugin"
)

// TestSimulationWithDeviceAttributes checks that a pod in an autoscaler's framework gets the same devices if the attributes come from
// a DeviceAttributes object as if the driver publishes them, for all sets of devices in use. Without the object, it gets none.
func TestSimulationWithDeviceAttributes(t *testing.T) {
	positions := []int64{0, 5, 1, 6, 2, 7, 3, 4}
	byName := map[string]int64{}
	var indices []int64
	for i, position := range positions {
		byName[plugintest.DeviceName(int64(i))] = position
		indices = append(indices, int64(i))
	}
	object := plugintest.AttributesTable("row", byName)
	plain, published := plugintest.Slice(indices...), plugintest.Slice(indices...)
	for i, position := range positions {
		published.Spec.Devices[i].Attributes[v1alpha1.DefaultAttributesDomain+"/x"] = resourceapi.DeviceAttribute{IntValue: ptr.To(position)}
	}
	enriched, _, err := deviceattributes.Apply(t.Context(), []*v1alpha1.DeviceAttributes{object}, []*resourceapi.ResourceSlice{plain}, nil)
	require.NoError(t, err)

	const x = "devices.map(d, d.attributes['topology.celset.dev'].x)"
	selecting := plugintest.Claim(1)
	selecting.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: "device.attributes['topology.celset.dev'].x > 2 && device.attributes['topology.celset.dev'].x < 6",
	}}}
	for name, one := range map[string]struct {
		claim *resourceapi.ResourceClaim
		// factory is the plugin under upstream's name.
		factory simulation.Factory
	}{
		"constraint":                      {plugintest.Constrain(t, plugintest.Claim(4), "row", x+".max() - "+x+".min() == 3"), plugin.New},
		"selector":                        {selecting, plugin.New},
		"selector with upstream's plugin": {selecting, dynamicresources.New},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := simulation.New(t.Context(), dynamicresources.Name, one.factory, plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate), one.claim, plugintest.Class())
			require.NoError(t, err)
			found := 0
			for inUse := range 1 << len(positions) {
				try := func(slices ...*resourceapi.ResourceSlice) string {
					devices, status := s.Try(t.Context(), plugintest.NodeName, slices, func(_ string, i int) bool { return inUse&(1<<i) != 0 })
					if !status.IsSuccess() {
						return ""
					}
					return fmt.Sprint(devices)
				}
				want := try(published)
				require.Equal(t, want, try(enriched...), "%08b", inUse)
				require.Empty(t, try(plain))
				if want != "" {
					found++
				}
			}
			require.Greater(t, found, 20)
			require.Less(t, found, 1<<len(positions))
		})
	}
}
