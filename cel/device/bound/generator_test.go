// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// randomAttributes are those of the random devices: x may be missing or a string, list
// may be a string.
var randomAttributes = randomexpr.Attributes{
	Domain: "d", Ints: []string{"x", "y"}, String: "s",
	Strings: "list", Version: "version", Bool: "flag", Capacity: "memory", Drivers: []string{"d", "e"},
}

var letter = rapid.SampledFrom([]string{"a", "b", "c"})

// devices draws n of them.
func devices(t *rapid.T, n int) []*device.Device {
	result := make([]*device.Device, n)
	for i := range result {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"d/y": {IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "y"))},
			"d/s": {StringValue: ptr.To(letter.Draw(t, "s"))},
		}}
		switch rapid.IntRange(0, 9).Draw(t, "x") {
		case 0: // missing
		case 1:
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{StringValue: ptr.To("x")}
		default:
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "x"))}
		}
		addRarelyRead(t, d)
		result[i] = device.New(rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(t, "driver"), d)
	}
	return result
}

func addRarelyRead(t *rapid.T, d *resourceapi.Device) {
	list := resourceapi.DeviceAttribute{StringValues: rapid.SliceOfN(letter, 1, 2).Draw(t, "list")}
	if rapid.IntRange(0, 11).Draw(t, "one string") == 11 {
		list = resourceapi.DeviceAttribute{StringValue: ptr.To("a")}
	}
	d.Attributes["d/list"] = list
	d.Attributes["d/version"] = resourceapi.DeviceAttribute{VersionValue: ptr.To(fmt.Sprintf("1.%d.0", rapid.IntRange(0, 2).Draw(t, "version")))}
	d.Attributes["d/flag"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(rapid.Bool().Draw(t, "flag"))}
	d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"d/memory": {Value: *resource.NewQuantity(rapid.Int64Range(1, 4).Draw(t, "memory")<<30, resource.BinarySI)},
	}
}
