// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/randomexpr"
)

// randomAttributes are those of the random devices: x may be missing or a string.
var randomAttributes = randomexpr.Attributes{Domain: "d", Ints: []string{"x", "y"}, String: "s"}

// devices draws n of them.
func devices(t *rapid.T, n int) []*device.Device {
	result := make([]*device.Device, n)
	for i := range result {
		attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"y": {IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "y"))},
			"s": {StringValue: ptr.To(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "s"))},
		}
		switch rapid.IntRange(0, 9).Draw(t, "x") {
		case 0: // missing
		case 1:
			attributes["x"] = resourceapi.DeviceAttribute{StringValue: ptr.To("x")}
		default:
			attributes["x"] = resourceapi.DeviceAttribute{IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "x"))}
		}
		result[i] = device.New("d", &resourceapi.Device{Name: fmt.Sprint(i), Attributes: attributes})
	}
	return result
}
