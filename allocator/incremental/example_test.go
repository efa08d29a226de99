// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package incremental_test

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/incremental"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// A deviceID identifies a device in the other program's search.
type deviceID struct{ driver, pool, device string }

// A constraint adapts a Set to the interface of another program's search, such as Karpenter's.
type constraint struct {
	*incremental.Set
	positions map[deviceID]int
}

func (c constraint) Add(request string, id deviceID) bool { return c.Set.Add(request, c.positions[id]) }
func (c constraint) Remove(request string, id deviceID)   { c.Set.Remove(request, c.positions[id]) }

// Example adds devices for a claim that wants two devices with consecutive indices.
func Example() {
	ctx := context.Background()
	environment, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		panic(err)
	}
	claim := claimOf("devices[1].attributes['gpu.example.com'].index - devices[0].attributes['gpu.example.com'].index == 1", "gpus")
	constraints, err := incremental.Constraints(ctx, environment, claim, noClasses{})
	if err != nil {
		panic(err)
	}

	// These are the devices of an instance type.
	var devices []incremental.Device
	positions := map[deviceID]int{}
	for _, index := range []int64{0, 3, 5, 4} {
		name := fmt.Sprint("gpu-", index)
		positions[deviceID{"gpu.example.com", "template", name}] = len(devices)
		devices = append(devices, incremental.Device{Driver: "gpu.example.com", Device: &resourceapi.Device{
			Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: &index}},
		}})
	}
	c := constraint{constraints[0].Over(ctx, devices, []incremental.Request{{Name: "gpus", Count: 2}}, cel.NewBudget(5_000_000)), positions}

	for _, name := range []string{"gpu-0", "gpu-3", "gpu-5", "gpu-4"} {
		fmt.Println(name, c.Add("gpus", deviceID{"gpu.example.com", "template", name}))
	}
	fmt.Println(c.Err())
	// Output:
	// gpu-0 false
	// gpu-3 true
	// gpu-5 false
	// gpu-4 true
	// <nil>
}
