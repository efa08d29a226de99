// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

type oneClass struct{ *resourceapi.DeviceClass }

func (c oneClass) Get(string) (*resourceapi.DeviceClass, error) { return c.DeviceClass, nil }

// TestContainers tests that a default applies to all requests of a container together, unless the claim is stored.
func TestContainers(t *testing.T) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourceapi.DeviceClassSpec{
		Config: []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: []byte(
				`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "row", "enforcement": "Always", "expression": "true"}`)},
		}}}},
	}}
	claim := func(name string, counts ...int64) *resourceapi.ResourceClaim {
		c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for i, count := range counts {
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourceapi.DeviceRequest{
				Name: string(rune('a' + i)), Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count},
			})
		}
		return c
	}
	for name, test := range map[string]struct {
		claim      *resourceapi.ResourceClaim
		containers [][]string
		want       [][]string
	}{
		"one device of each request": {claim(v1alpha1.UnstoredClaimName, 1, 1), [][]string{{"b"}, {"a", "b"}}, [][]string{{"a", "b"}}},
		"a request is no set":        {claim(v1alpha1.UnstoredClaimName, 2, 2), [][]string{{"b"}, {"a", "b"}}, [][]string{{"b"}, {"a", "b"}}},
		"of a node that provides b":  {claim(v1alpha1.UnstoredClaimName, 2), [][]string{{"b"}, {"a", "b"}}, [][]string{{"a"}}},
		"of no container":            {claim(v1alpha1.UnstoredClaimName, 1, 1, 2), [][]string{{"a", "b"}}, [][]string{{"a", "b"}, {"c"}}},
		"a claim that can be stored": {claim("mine", 2, 2), [][]string{{"a", "b"}}, [][]string{{"a"}, {"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := v1alpha1.WithContainers(test.claim, test.containers)
			resolved, err := v1alpha1.Resolve(c, oneClass{class})
			require.NoError(t, err)
			var got [][]string
			for _, constraint := range resolved {
				require.True(t, constraint.Default)
				got = append(got, constraint.Requests)
			}
			require.Equal(t, test.want, got)
			require.True(t, v1alpha1.HasConstraints(c, func(string) bool { return true }))
			require.Equal(t, v1alpha1.ContainersOf(c), v1alpha1.ContainersOf(v1alpha1.WithContainersOf(claim(c.Name, 1), c)))
		})
	}
}
