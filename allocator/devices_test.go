// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

func names(ids []structured.DeviceID) []string {
	result := []string{}
	for _, id := range ids {
		result = append(result, id.Device.String())
	}
	return result
}

// What a request has does not depend on what others want, and a selector that fails for a
// device leaves it out.
func TestRequestDevices(t *testing.T) {
	tainted := newDevice("tainted", attrs{"index": 3}, func(d *resourceapi.Device) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	})
	s := scenario{
		slices: []*sliceBuilder{slice("1", newDevice("a", attrs{"index": 0}), newDevice("b", attrs{"index": 1}), newDevice("none", nil), tainted)},
		inUse:  []string{"b"},
		claims: []*claimBuilder{claim("c").want("x", 3).want("y", 1, index+" < 3")},
	}
	a := s.allocator(t)
	devices, err := a.RequestDevices(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	require.Len(t, devices, 2)
	x, y := devices[0], devices[1]
	require.Equal(t, []any{"c", "x", 3, "y", 1}, []any{x.Claim.Name, x.Request, x.Wanted, y.Request, y.Wanted})
	require.Equal(t, [][]string{{"a", "b", "none"}, {"a", "none"}, {}}, [][]string{names(x.Matching), names(x.Free), names(x.Failed)})
	require.Equal(t, [][]string{{"a", "b"}, {"a"}, {"none"}}, [][]string{names(y.Matching), names(y.Free), names(y.Failed)})
	all, err := a.NodeDevices(s.onNode())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "none", "tainted"}, names(all))
}

func TestRequestDevicesFails(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(2)...)}, claims: []*claimBuilder{claim("c").want("x", 1)}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.allocator(t).RequestDevices(ctx, s.onNode(), s.apiClaims())
	require.ErrorIs(t, err, context.Canceled)

	claims := s.apiClaims()
	claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName = "none"
	_, err = s.allocator(t).RequestDevices(t.Context(), s.onNode(), claims)
	require.ErrorContains(t, err, "could not retrieve device class none")
}
