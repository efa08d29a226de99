// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/internal/testing/policy"
)

// TestNothingIsWrittenToDevices: informers share them.
func TestNothingIsWrittenToDevices(t *testing.T) {
	policies := map[string]*resourceapi.CapacityRequestPolicy{
		"default": policy.Default("1.5Gi"), "values": policy.OneOf("1.5Gi", "2.5Gi"), "range": policy.Range("1.5Gi", "4.5Gi", "0.5Gi"),
		"decimal": policy.Range("1.5Gi", "123456789012345678901", "0.5Gi"),
	}
	for name, allowed := range policies {
		t.Run(name, func(t *testing.T) {
			var devices []resourceapi.Device
			for range 3 {
				devices = append(devices, newDevice("", attrs{"index": 0}, shared, policy.Having("memory", "12.5Gi", allowed)))
			}
			given := scenario{
				slices: []*sliceBuilder{slice("1", withNames(devices)...)},
				claims: []*claimBuilder{claim("c").want("x", 2).cel("e").define("e", unread).edit(func(r *resourceapi.ExactDeviceRequest) {
					r.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1.5Gi")}}
				})},
				shares: []share{{device: "device-0", consumed: map[string]string{"memory": "1.5Gi"}}},
			}
			slice, claim := given.slices[0].DeepCopy(), given.claims[0].DeepCopy()
			s := given.search(t)
			s.symmetry.classOf()
			s.view()
			_, err := given.allocate(t)
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(slice, given.slices[0].ResourceSlice), "the slice was written to")
			require.True(t, reflect.DeepEqual(claim, given.claims[0].ResourceClaim), "the claim was written to")
		})
	}
}
