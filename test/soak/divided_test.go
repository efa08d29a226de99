// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/ledger"
)

const (
	chipDriver = "chip.example.com"
	linkDriver = "link.example.com"
	// slots is the number of slots of a chip, and of a link.
	slots = 4
)

// publishDivided publishes two devices on each node: a chip that can be allocated as a whole or in quarters, and a link that
// several claims can share.
func publishDivided(t *testing.T, cp *env.Env, nodes []string) {
	t.Helper()
	for _, driver := range []string{chipDriver, linkDriver} {
		cp.CreateClass(t, driver)
	}
	devices := []resourceapi.Device{partOfChip("whole", "whole", slots)}
	for i := range slots {
		devices = append(devices, partOfChip(fmt.Sprint("quarter-", i), "quarter", 1))
	}
	link := resourceapi.Device{
		Name: "link", AllowMultipleAllocations: ptr.To(true),
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"slots": {Value: quantity(slots)}},
	}
	for _, node := range nodes {
		for _, spec := range []resourceapi.ResourceSliceSpec{
			{Driver: chipDriver, SharedCounters: []resourceapi.CounterSet{{Name: "chip", Counters: counters(slots)}}},
			{Driver: chipDriver, Devices: devices},
			{Driver: linkDriver, Devices: []resourceapi.Device{link}},
		} {
			spec.NodeName = &node
			spec.Pool = resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
			if spec.Driver == chipDriver {
				spec.Pool.ResourceSliceCount = 2
			}
			cp.CreateSlice(t, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: node + "-"}, Spec: spec})
		}
	}
	for _, k := range divided {
		env.Create(t, cp.Client().ResourceV1().ResourceClaimTemplates(namespace), k.template())
	}
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

func counters(n int64) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"slots": {Value: quantity(n)}}
}

func partOfChip(name, size string, n int64) resourceapi.Device {
	return resourceapi.Device{
		Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"size": {StringValue: &size}},
		ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "chip", Counters: counters(n)}},
	}
}

// sizeOf returns a part of a claim that requests a partition of a chip, of the given size.
func sizeOf(size string) env.Part {
	return env.Exactly("part", resourceapi.ExactDeviceRequest{
		DeviceClassName: chipDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourceapi.DeviceSelector{env.Selector(fmt.Sprintf("device.attributes[%q].size == %q", chipDriver, size))},
	})
}

// slotsOf returns a part of a claim that requests n slots of a link.
func slotsOf(n int64) env.Part {
	return env.Exactly("share", resourceapi.ExactDeviceRequest{
		DeviceClassName: linkDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"slots": quantity(n)}},
	})
}

// slotsUsed returns how many slots of its chip or link an allocated device uses.
func slotsUsed(result *resourceapi.DeviceRequestAllocationResult) ledger.Use {
	use := ledger.Use{Of: result.Driver + "/" + result.Pool, Amount: 1, All: slots}
	switch result.Driver {
	case chipDriver:
		if result.Device == "whole" {
			use.Amount = slots
		}
	case linkDriver:
		consumed := result.ConsumedCapacity["slots"]
		use.Amount = consumed.Value()
	default:
		return ledger.Use{}
	}
	return use
}

// TestSlotsAreCounted checks that the ledger reports a chip or link with too many allocated slots. Otherwise the soak tests
// could not find that.
func TestSlotsAreCounted(t *testing.T) {
	for allocated, want := range map[string]ledger.Use{
		"chip.example.com/whole": {Of: "chip.example.com/node", Amount: slots, All: slots}, "chip.example.com/quarter-1": {Of: "chip.example.com/node", Amount: 1, All: slots},
		"link.example.com/link": {Of: "link.example.com/node", Amount: 3, All: slots}, "mesh.example.com/mesh-1": {},
	} {
		driver, device, _ := strings.Cut(allocated, "/")
		result := &resourceapi.DeviceRequestAllocationResult{Driver: driver, Pool: "node", Device: device}
		if driver == linkDriver {
			result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"slots": quantity(3)}
		}
		require.Equal(t, want, slotsUsed(result), allocated)
	}
}
