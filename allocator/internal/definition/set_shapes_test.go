// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// want returns a request for count devices.
func want(name string, count int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count}}
}

// wantAll returns a request for all devices.
func wantAll(name string) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{AllocationMode: resourceapi.DeviceAllocationModeAll}}
}

// wantOne returns a request with one alternative for each count. The alternatives are named 1, 2 and so on.
func wantOne(name string, counts ...int64) resourceapi.DeviceRequest {
	r := resourceapi.DeviceRequest{Name: name}
	for i, count := range counts {
		r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{
			Name: string(rune('1' + i)), AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		})
	}
	return r
}

func TestSetShapes(t *testing.T) {
	shapesOf := func(names []string, requests ...resourceapi.DeviceRequest) []SetShape {
		return setShapes(&resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}}}, names)
	}
	type requests []resourceapi.DeviceRequest
	for name, test := range map[string]struct {
		requests requests
		names    []string
		want     []SetShape
	}{
		"one request":                     {requests{want("a", 4)}, nil, []SetShape{{4, true}}},
		"two requests":                    {requests{want("a", 4), want("b", 2)}, nil, []SetShape{{6, false}}},
		"one of two":                      {requests{want("a", 4), want("b", 2)}, []string{"b"}, []SetShape{{2, true}}},
		"alternatives":                    {requests{want("a", 1), wantOne("b", 3, 1)}, nil, []SetShape{{2, false}, {4, false}}},
		"one alternative":                 {requests{want("a", 1), wantOne("b", 3, 1)}, []string{"a", "b/2"}, []SetShape{{1, true}, {2, false}}},
		"all":                             {requests{want("a", 1), wantAll("b")}, nil, nil},
		"all that is not covered":         {requests{want("a", 1), wantAll("b")}, []string{"a"}, []SetShape{{1, true}}},
		"none":                            {requests{want("a", 0)}, nil, nil},
		"more than a claim can have":      {requests{want("a", MaxSetSize+1)}, nil, nil},
		"more than a claim can have, too": {requests{want("a", 1<<62), want("b", 1<<62)}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := shapesOf(test.names, test.requests...)
			slices.SortFunc(got, func(a, b SetShape) int { return a.Size - b.Size })
			require.Equal(t, test.want, got)
		})
	}
	many := shapesOf(nil, wantOne("a", 1, 2, 3), wantOne("b", 1, 2, 3), wantOne("c", 1, 2, 3), wantOne("d", 1, 2, 3))
	require.Len(t, many, maxShapes)
}
