// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// firstAvailable makes a request whose alternatives, called "n2" for two devices
// and so on, want the given counts, or all devices for -1.
func firstAvailable(name string, counts ...int64) resourceapi.DeviceRequest {
	request := resourceapi.DeviceRequest{Name: name}
	for _, count := range counts {
		sub := resourceapi.DeviceSubRequest{
			Name: "n" + string(rune('0'+count)), DeviceClassName: "gpu",
			AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		}
		if count < 0 {
			sub.Name, sub.AllocationMode, sub.Count = "all", resourceapi.DeviceAllocationModeAll, 0
		}
		request.FirstAvailable = append(request.FirstAvailable, sub)
	}
	return request
}

func TestSolveAlternatives(t *testing.T) {
	for name, test := range map[string]struct {
		claim     *resourceapi.ResourceClaim
		allocated []string
		// want are requests and devices.
		want [][2]string
	}{
		"first": {
			claim: celClaim("true", nil, firstAvailable("r", 2, 1)),
			want:  [][2]string{{"r/n2", "a"}, {"r/n2", "b"}},
		},
		"second, because of the first's number": {
			claim: celClaim("true", nil, firstAvailable("r", 4, 1)),
			want:  [][2]string{{"r/n1", "a"}},
		},
		"second, because of a later request": {
			claim: celClaim("true", nil, firstAvailable("r", 3, 2), exactly("s", 1)),
			want:  [][2]string{{"r/n2", "a"}, {"r/n2", "b"}, {"s", "c"}},
		},
		"all in use": {
			claim:     celClaim("true", nil, firstAvailable("r", -1, 1)),
			allocated: []string{"b"},
			want:      [][2]string{{"r/n1", "a"}},
		},
		"size of the chosen alternative": {
			claim: celClaim("size(devices) == 3", nil, firstAvailable("r", 2, 3)),
			want:  [][2]string{{"r/n3", "a"}, {"r/n3", "b"}, {"r/n3", "c"}},
		},
		"one alternative covered": {
			claim: celClaim("size(devices) == 1", []string{"r/n2", "s"}, firstAvailable("r", 2, 1), exactly("s", 1)),
			want:  [][2]string{{"r/n1", "a"}, {"s", "b"}},
		},
		"all alternatives covered": {
			claim: celClaim("size(devices) == 1", []string{"r"}, firstAvailable("r", 2, 1), exactly("s", 1)),
			want:  [][2]string{{"r/n1", "a"}, {"s", "b"}},
		},
		"nothing covered": {
			claim: celClaim("false", []string{"r/n2"}, firstAvailable("r", 2, 1)),
			want:  [][2]string{{"r/n1", "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem([]*resourceapi.ResourceSlice{gpus("p", 0, 1, 2)}, []*resourceapi.ResourceClaim{test.claim}, test.allocated...)
			p.Features.PrioritizedList = true
			require.Empty(t, cmp.Diff(test.want, requestsAndDevices(t, p)))
		})
	}
}

func requestsAndDevices(t *testing.T, p Problem) [][2]string {
	solution, err := Solve(p)
	require.NoError(t, err)
	var result [][2]string
	for _, claim := range solution.Claims {
		for _, pick := range claim {
			result = append(result, [2]string{pick.Request, pick.Device})
		}
	}
	return result
}

func TestSolveShared(t *testing.T) {
	withMemory := func(request resourceapi.DeviceRequest, amount string) resourceapi.DeviceRequest {
		request.Exactly.Capacity = &resourceapi.CapacityRequirements{
			Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount)}}
		return request
	}
	for name, test := range map[string]struct {
		requests []resourceapi.DeviceRequest
		consumed string // of device a
		want     [][2]string
	}{
		"twice": {
			requests: []resourceapi.DeviceRequest{withMemory(exactly("r", 1), "4"), withMemory(exactly("s", 1), "6")},
			want:     [][2]string{{"r", "a"}, {"s", "a"}},
		},
		"full": {
			requests: []resourceapi.DeviceRequest{withMemory(exactly("r", 1), "4"), withMemory(exactly("s", 1), "7")},
			want:     [][2]string{{"r", "a"}, {"s", "b"}},
		},
		"once a request": {
			requests: []resourceapi.DeviceRequest{withMemory(exactly("r", 2), "1")},
			want:     [][2]string{{"r", "a"}, {"r", "b"}},
		},
		"everything unless requested": {
			requests: []resourceapi.DeviceRequest{exactly("r", 1), withMemory(exactly("s", 1), "1")},
			want:     [][2]string{{"r", "a"}, {"s", "b"}},
		},
		"consumed before": {
			requests: []resourceapi.DeviceRequest{withMemory(exactly("r", 1), "4")},
			consumed: "7",
			want:     [][2]string{{"r", "b"}},
		},
		"more than a device has": {requests: []resourceapi.DeviceRequest{withMemory(exactly("r", 1), "11")}},
		"all that are large enough": {
			requests: []resourceapi.DeviceRequest{withMemory(all("r"), "10")},
			want:     [][2]string{{"r", "a"}, {"r", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slice := gpus("p", 0, 1)
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].AllowMultipleAllocations = ptr.To(true)
				slice.Spec.Devices[i].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("10")}}
			}
			p := problem([]*resourceapi.ResourceSlice{slice}, []*resourceapi.ResourceClaim{celClaim("true", nil, test.requests...)})
			p.Features.ConsumableCapacity = true
			if test.consumed != "" {
				p.State.AggregatedCapacity = structured.NewConsumedCapacityCollection()
				p.State.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(structured.MakeDeviceID(driver, "p", "a"),
					map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(test.consumed)}))
			}
			require.Empty(t, cmp.Diff(test.want, requestsAndDevices(t, p)))
		})
	}
}

func TestSolveCounters(t *testing.T) {
	counters := func(value string) map[string]resourceapi.Counter {
		return map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(value)}}
	}
	for name, test := range map[string]struct {
		consumes  []string // by the devices a, b, ...; empty for nothing
		allocated []string
		count     int64
		want      []string
	}{
		"enough":                {consumes: []string{"4", "6"}, count: 2, want: []string{"a", "b"}},
		"another set":           {consumes: []string{"6", "5", "4"}, count: 2, want: []string{"a", "c"}},
		"not enough":            {consumes: []string{"6", "5"}, count: 2},
		"consumed before":       {consumes: []string{"6", "5", "4"}, allocated: []string{"a"}, count: 1, want: []string{"c"}},
		"too much before":       {consumes: []string{"11", "1"}, allocated: []string{"a"}, count: 1},
		"devices that don't do": {consumes: []string{"11", "1", ""}, allocated: []string{"a"}, count: 1, want: []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			sets, devices := gpus("p"), gpus("p", make([]int64, len(test.consumes))...)
			sets.Name = "sets"
			sets.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "set", Counters: counters("10")}}
			sets.Spec.Pool.ResourceSliceCount, devices.Spec.Pool.ResourceSliceCount = 2, 2
			for i, value := range test.consumes {
				if value != "" {
					devices.Spec.Devices[i].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "set", Counters: counters(value)}}
				}
			}
			p := problem([]*resourceapi.ResourceSlice{sets, devices}, []*resourceapi.ResourceClaim{celClaim("true", nil, exactly("r", test.count))}, test.allocated...)
			p.Features.PartitionableDevices = true
			solution, err := Solve(p)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(test.want, deviceNames(solution)))
		})
	}
}

func TestCompareLists(t *testing.T) {
	withAttribute := func(a resourceapi.DeviceAttribute) *device {
		return &device{
			Device: &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"example.com/a": a}},
			slice:  &resourceapi.ResourceSlice{},
		}
	}
	texts := func(values ...string) *device {
		return withAttribute(resourceapi.DeviceAttribute{StringValues: values})
	}
	for name, test := range map[string]struct {
		devices         []*device
		match, distinct bool
	}{
		"none":               {nil, true, true},
		"one":                {[]*device{texts("a", "b")}, true, true},
		"one in common":      {[]*device{texts("a", "b"), texts("b", "c")}, true, false},
		"none in common":     {[]*device{texts("a"), texts("b", "c")}, false, true},
		"in pairs only":      {[]*device{texts("a", "b"), texts("b", "c"), texts("c", "a")}, false, false},
		"a list and a value": {[]*device{texts("a", "b"), withAttribute(resourceapi.DeviceAttribute{StringValue: ptr.To("a")})}, true, false},
		"types differ":       {[]*device{texts("1.0.0"), withAttribute(resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0"}})}, false, true},
		"no value":           {[]*device{withAttribute(resourceapi.DeviceAttribute{})}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.match, constraint{match: "example.com/a"}.compares(test.devices, true), "match")
			require.Equal(t, test.distinct, constraint{distinct: "example.com/a"}.compares(test.devices, true), "distinct")
		})
	}
	require.Equal(t, sets.New("int 1", "int 2"), elements(resourceapi.DeviceAttribute{IntValues: []int64{1, 2}}, true))
}
