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

// MaxNodeDevices is the maximum number of devices that a pod gets on a node, if the expression reads these devices.
const MaxNodeDevices = 64

// The devices of a node are encoded as a text attribute, so that code that compares or copies attributes of nodes includes
// them.
const (
	devicesDomain = "#devices"
	devicesID     = "pod"

	// NodeDevices is the name of the attribute that encodes the field "devices" of a node.
	NodeDevices resourceapi.QualifiedName = devicesDomain + "/" + devicesID
)

// OfDriver is a device with its driver. Expressions see its attributes and capacities.
type OfDriver struct {
	Driver string             `json:"driver"`
	Device resourceapi.Device `json:"device"`
}

// NodeDevicesOf encodes devices as the value of [NodeDevices]. It sorts the devices by content, so that equal devices in
// another order have the same encoding.
func NodeDevicesOf(devices []OfDriver) (resourceapi.DeviceAttribute, error) {
	if len(devices) > MaxNodeDevices {
		return resourceapi.DeviceAttribute{}, fmt.Errorf("the pod gets %d devices, the limit for n.devices is %d", len(devices), MaxNodeDevices)
	}
	return encodedSet(devices)
}

// encodedSet returns a text attribute with the values as a JSON list, sorted by their texts.
func encodedSet[T any](values []T) (resourceapi.DeviceAttribute, error) {
	texts := make([]string, len(values))
	for i := range values {
		raw, err := json.Marshal(values[i])
		if err != nil {
			return resourceapi.DeviceAttribute{}, err
		}
		texts[i] = string(raw)
	}
	slices.Sort(texts)
	text := "[" + strings.Join(texts, ",") + "]"
	return resourceapi.DeviceAttribute{StringValue: &text}, nil
}

// nodeDevices has the decoded devices of a node, and the same devices as a CEL list. If decoding fails, list is a CEL error.
type nodeDevices struct {
	devices []*Device
	list    ref.Val
}

func devicesOf(node *resourceapi.Device) *nodeDevices {
	text := node.Attributes[NodeDevices].StringValue
	if text == nil {
		return &nodeDevices{list: types.NewErr("n.devices is not available for this node")}
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

// HasNodeDevices reports whether the expression reads the devices of nodes.
func (r ReadSet) HasNodeDevices() bool {
	return r.Attributes[AttributeName{devicesDomain, devicesID}]
}
