// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fingerprint

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/policy"
)

// writtenCapacities returns capacities with quantities in a spelling that drivers may use but Kubernetes would normalize.
func writtenCapacities(allowed *resourceapi.CapacityRequestPolicy) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	device := policy.Device(policy.Having("memory", "12.5Gi", allowed), policy.Having("cores", "4.50", nil))
	return device.Capacity
}

func TestDifferentCapacitiesAreWrittenDifferently(t *testing.T) {
	seen := map[string]string{}
	for name, capacities := range map[string]map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"none":          nil,
		"no policy":     writtenCapacities(nil),
		"empty policy":  writtenCapacities(&resourceapi.CapacityRequestPolicy{}),
		"default":       writtenCapacities(policy.Default("1.5Gi")),
		"other default": writtenCapacities(policy.Default("1.6Gi")),
		"value":         writtenCapacities(policy.OneOf("1.5Gi")),
		"values":        writtenCapacities(policy.OneOf("1.5Gi", "2Gi")),
		"empty range":   writtenCapacities(policy.Range("", "", "")),
		"minimum":       writtenCapacities(policy.Range("1.5Gi", "", "")),
		"maximum":       writtenCapacities(policy.Range("", "1.5Gi", "")),
		"step":          writtenCapacities(policy.Range("", "", "1.5Gi")),
		"other amount":  policy.Device(policy.Having("memory", "12Gi", nil), policy.Having("cores", "4.50", nil)).Capacity,
		"other name":    policy.Device(policy.Having("memor", "12.5Gi", nil), policy.Having("cores", "4.50", nil)).Capacity,
		"one":           policy.Device(policy.Having("memory", "12.5Gi", nil)).Capacity,
	} {
		text := string(AppendCapacities(nil, capacities))
		require.NotContains(t, seen, text, "%s is like %s", name, seen[text])
		seen[text] = name
		for range 4 {
			require.Equal(t, text, string(AppendCapacities(nil, capacities)), "in the order of their names")
		}
	}
	require.Equal(t, AppendCapacities(nil, writtenCapacities(policy.Default("1.5Gi"))), AppendCapacities(nil, writtenCapacities(policy.Default("1536Mi"))), "the same amount")

	texts := map[string]bool{}
	for _, value := range []*bool{nil, ptr.To(false), ptr.To(true)} {
		texts[string(AppendBool(nil, value))] = true
	}
	require.Len(t, texts, 3)
}

// TestAllOfACapacityIsWritten fails if Kubernetes adds a field that AppendCapacities does not encode.
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
