// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// writtenCapacities are capacities as drivers may write them, which is not how Kubernetes
// writes them.
func writtenCapacities(policy *resourceapi.CapacityRequestPolicy) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	device := newDevice("", nil, having("memory", "12.5Gi", policy), having("cores", "4.50", nil))
	return device.Capacity
}

func TestDifferentCapacitiesAreWrittenDifferently(t *testing.T) {
	seen := map[string]string{}
	for name, capacities := range map[string]map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"none":          nil,
		"no policy":     writtenCapacities(nil),
		"empty policy":  writtenCapacities(&resourceapi.CapacityRequestPolicy{}),
		"default":       writtenCapacities(byDefault("1.5Gi")),
		"other default": writtenCapacities(byDefault("1.6Gi")),
		"value":         writtenCapacities(oneOf("1.5Gi")),
		"values":        writtenCapacities(oneOf("1.5Gi", "2Gi")),
		"empty range":   writtenCapacities(rangeOf("", "", "")),
		"minimum":       writtenCapacities(rangeOf("1.5Gi", "", "")),
		"maximum":       writtenCapacities(rangeOf("", "1.5Gi", "")),
		"step":          writtenCapacities(rangeOf("", "", "1.5Gi")),
		"other amount":  newDevice("", nil, having("memory", "12Gi", nil), having("cores", "4.50", nil)).Capacity,
		"other name":    newDevice("", nil, having("memor", "12.5Gi", nil), having("cores", "4.50", nil)).Capacity,
		"one":           newDevice("", nil, having("memory", "12.5Gi", nil)).Capacity,
	} {
		text := string(appendCapacities(nil, capacities))
		require.NotContains(t, seen, text, "%s is like %s", name, seen[text])
		seen[text] = name
		for range 4 {
			require.Equal(t, text, string(appendCapacities(nil, capacities)), "in the order of their names")
		}
	}
	require.Equal(t, appendCapacities(nil, writtenCapacities(byDefault("1.5Gi"))), appendCapacities(nil, writtenCapacities(byDefault("1536Mi"))), "the same amount")

	texts := map[string]bool{}
	for _, value := range []*bool{nil, ptr.To(false), ptr.To(true)} {
		texts[string(appendBool(nil, value))] = true
	}
	require.Len(t, texts, 3)
}

// TestAllOfACapacityIsWritten fails when Kubernetes adds a field.
func TestAllOfACapacityIsWritten(t *testing.T) {
	for of, written := range map[reflect.Type][]string{
		reflect.TypeFor[resourceapi.DeviceCapacity]():             {"Value", "RequestPolicy"},
		reflect.TypeFor[resourceapi.CapacityRequestPolicy]():      {"Default", "ValidValues", "ValidRange"},
		reflect.TypeFor[resourceapi.CapacityRequestPolicyRange](): {"Min", "Max", "Step"},
	} {
		var fields []string
		for i := range of.NumField() {
			fields = append(fields, of.Field(i).Name)
		}
		require.Equal(t, written, fields, of)
	}
}

// TestNothingIsWrittenToDevices: informers share them.
func TestNothingIsWrittenToDevices(t *testing.T) {
	policies := map[string]*resourceapi.CapacityRequestPolicy{
		"default": byDefault("1.5Gi"), "values": oneOf("1.5Gi", "2.5Gi"), "range": rangeOf("1.5Gi", "4.5Gi", "0.5Gi"),
		"decimal": rangeOf("1.5Gi", "123456789012345678901", "0.5Gi"),
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			var devices []resourceapi.Device
			for range 3 {
				devices = append(devices, newDevice("", attrs{"index": 0}, shared, having("memory", "12.5Gi", policy)))
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
			s.hardware()
			_, err := given.allocate(t)
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(slice, given.slices[0].ResourceSlice), "the slice was written to")
			require.True(t, reflect.DeepEqual(claim, given.claims[0].ResourceClaim), "the claim was written to")
		})
	}
}
