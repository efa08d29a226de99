// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	resourceapi "k8s.io/api/resource/v1"
)

// MaxNodeDevices is how many devices a pod of a group may get on a node where an expression reads them.
const MaxNodeDevices = 64

// The devices of a node are an attribute of it, as text: so they are part of whatever is known of nodes that are alike.
const (
	devicesDomain = "#devices"
	devicesID     = "pod"

	// NodeDevices is the attribute of a node from which its field devices is read.
	NodeDevices resourceapi.QualifiedName = devicesDomain + "/" + devicesID
)

// OfDriver is a device, and whose it is. Expressions see its attributes and capacities.
type OfDriver struct {
	Driver string             `json:"driver"`
	Device resourceapi.Device `json:"device"`
}

// NodeDevicesOf is the value of [NodeDevices] for devices. They stand in an order that depends on what they have only, so that
// the value is the same for sets of devices that are alike.
func NodeDevicesOf(devices []OfDriver) (resourceapi.DeviceAttribute, error) {
	if len(devices) > MaxNodeDevices {
		return resourceapi.DeviceAttribute{}, fmt.Errorf("%d devices, at most %d are compared", len(devices), MaxNodeDevices)
	}
	texts := make([]string, len(devices))
	for i := range devices {
		raw, err := json.Marshal(devices[i])
		if err != nil {
			return resourceapi.DeviceAttribute{}, err
		}
		texts[i] = string(raw)
	}
	slices.Sort(texts)
	text := "[" + strings.Join(texts, ",") + "]"
	return resourceapi.DeviceAttribute{StringValue: &text}, nil
}

// nodeDevices are the devices of a node, as a list for CEL, too.
type nodeDevices struct {
	devices []*Device
	list    ref.Val
}

func devicesOf(node *resourceapi.Device) *nodeDevices {
	text := node.Attributes[NodeDevices].StringValue
	if text == nil {
		return &nodeDevices{list: types.NewErr("the devices of the node are not known")}
	}
	var decoded []OfDriver
	if err := json.Unmarshal([]byte(*text), &decoded); err != nil {
		return &nodeDevices{list: types.NewErr("the devices of the node: %v", err)}
	}
	d := &nodeDevices{devices: make([]*Device, len(decoded))}
	values := make([]ref.Val, len(decoded))
	for i := range decoded {
		d.devices[i] = New(decoded[i].Driver, &decoded[i].Device)
		values[i] = d.devices[i]
	}
	d.list = types.NewRefValList(types.DefaultTypeAdapter, values)
	return d
}

// HasNodeDevices reports whether the devices of nodes are read.
func (r ReadSet) HasNodeDevices() bool {
	return r.Attributes[AttributeName{devicesDomain, devicesID}]
}
