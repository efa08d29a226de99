// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// BenchmarkSlowCases has claims that keep upstream's allocator busy for long
// because it tries all ways to allocate too few devices. They are as large as
// upstream can answer in about a second.
func BenchmarkSlowCases(b *testing.B) {
	for _, test := range slowCases() {
		benchmark(b, "case="+test.name, test.slices, test.claim, test.want)
	}
}

type slowCase struct {
	name   string
	slices []*resourceapi.ResourceSlice
	claim  *resourceapi.ResourceClaim
	want   bool
}

func slowCases() []slowCase {
	return []slowCase{
		{"one-device-short/count=18", slicesOf(devices(17, nil)), claimOf(request("mla", 18, "")), false},
		{"one-device-short/requests=8", slicesOf(devices(7, nil)), claimOf(requests("mla", 8, "")...), false},
		{"match-second-group/count=14", slicesOf(devices(27, grouped(13))), matching(claimOf(request("mla", 14, "")), "group"), true},
		{"pairs-one-nic-missing/pairs=7", slicesOf(pairs(7)), pairClaim(7), false},
		{"alternatives-last-impossible/requests=3", slicesOf(devices(8, nil)), alternativesClaim(3, 8), false},
		{"partitions-one-short/count=15", partitions(7), claimOf(request("half", 15, kind("half"))), false},
		{"all-sets/count=6/devices=20", slicesOf(devices(20, nil)), claimOf(request("mla", 6, ""), request("none", 1, kind("none"))), false},
	}
}

type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// devices have the attributes that their number gives them.
func devices(n int, of func(int) attributes) []resourceapi.Device {
	result := make([]resourceapi.Device, n)
	for i := range result {
		result[i].Name = fmt.Sprintf("mla-%d", i)
		if of != nil {
			result[i].Attributes = of(i)
		}
	}
	return result
}

// grouped puts the first devices into one group and the others into another.
func grouped(first int) func(int) attributes {
	return func(i int) attributes {
		group := "a"
		if i >= first {
			group = "b"
		}
		return attributes{"group": {StringValue: &group}}
	}
}

// pairs are GPUs, one on each root, and NICs on all roots but the last.
func pairs(n int) []resourceapi.Device {
	var result []resourceapi.Device
	for _, kind := range []string{"gpu", "nic"} {
		for i := range n {
			if kind == "nic" && i == n-1 {
				continue
			}
			result = append(result, resourceapi.Device{
				Name: fmt.Sprintf("%s-%d", kind, i),
				Attributes: attributes{
					"kind": {StringValue: ptr.To(kind)},
					"root": {StringValue: ptr.To(fmt.Sprint("root-", i))},
				},
			})
		}
	}
	return result
}

func pairClaim(n int) *resourceapi.ResourceClaim {
	c := claimOf()
	for i := range n {
		gpu, nic := fmt.Sprint("gpu-", i), fmt.Sprint("nic-", i)
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, request(gpu, 1, kind("gpu")), request(nic, 1, kind("nic")))
		matching(c, "root", gpu, nic)
	}
	return c
}

// partitions are GPUs that can be had whole or as two halves.
func partitions(gpus int) []*resourceapi.ResourceSlice {
	var counterSets []resourceapi.CounterSet
	var all []resourceapi.Device
	for i := range gpus {
		gpu := fmt.Sprint("gpu-", i)
		counterSets = append(counterSets, resourceapi.CounterSet{Name: gpu, Counters: map[string]resourceapi.Counter{"slices": {Value: resource.MustParse("2")}}})
		for _, part := range []struct{ name, kind, slices string }{{"whole", "whole", "2"}, {"half-0", "half", "1"}, {"half-1", "half", "1"}} {
			all = append(all, resourceapi.Device{
				Name:       gpu + "-" + part.name,
				Attributes: attributes{"kind": {StringValue: &part.kind}},
				ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
					CounterSet: gpu, Counters: map[string]resourceapi.Counter{"slices": {Value: resource.MustParse(part.slices)}},
				}},
			})
		}
	}
	result := slicesOf(all)
	counters := result[0].DeepCopy()
	counters.Name = "counters"
	counters.Spec.Devices = nil
	counters.Spec.SharedCounters = counterSets
	result = append(result, counters)
	for _, slice := range result {
		slice.Spec.Pool.ResourceSliceCount = 2
	}
	return result
}

func slicesOf(devices []resourceapi.Device) []*resourceapi.ResourceSlice {
	return []*resourceapi.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Name: "devices"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			NodeName: ptr.To(nodeName),
			Pool:     resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: 1},
			Devices:  devices,
		},
	}}
}

// kind selects devices by the attribute of that name.
func kind(value string) string {
	return fmt.Sprintf("device.attributes['%s'].?kind.orValue('') == '%s'", driver, value)
}

func claimOf(requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	c := claim(0)
	c.Spec.Devices.Requests = requests
	return c
}

func requests(prefix string, n int, selector string) []resourceapi.DeviceRequest {
	var result []resourceapi.DeviceRequest
	for i := range n {
		result = append(result, request(fmt.Sprint(prefix, "-", i), 1, selector))
	}
	return result
}

func request(name string, count int, selector string) resourceapi.DeviceRequest {
	r := claim(count).Spec.Devices.Requests[0]
	r.Name = name
	if selector != "" {
		r.Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: selector}}}
	}
	return r
}

func matching(c *resourceapi.ResourceClaim, attribute string, requests ...string) *resourceapi.ResourceClaim {
	c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests:       requests,
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(driver + "/" + attribute)),
	})
	return c
}

// alternativesClaim has requests with alternatives that can all be met, and one
// at the end with none that can.
func alternativesClaim(n, devices int) *resourceapi.ResourceClaim {
	c := claimOf()
	for i := range n {
		r := resourceapi.DeviceRequest{Name: fmt.Sprint("request-", i)}
		for j := range 8 {
			count := int64(1)
			if i == n-1 {
				count = int64(devices + 1)
			}
			r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{
				Name: fmt.Sprint("alternative-", j), DeviceClassName: driver,
				AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
			})
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r)
	}
	return c
}
