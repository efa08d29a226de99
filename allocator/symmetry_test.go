// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/policy"
)

// Devices are of one kind if they are the same in what constraints read, to selectors, and in
// being free.
func TestKindsOfDevices(t *testing.T) {
	of := func(all ...attrs) []resourceapi.Device {
		var devices []resourceapi.Device
		for _, a := range all {
			devices = append(devices, newDevice("", a))
		}
		return devices
	}
	const serial = "device.attributes['mla.example.com'].?serial.orValue('')"
	for name, test := range map[string]struct {
		devices   []resourceapi.Device
		selectors []string
		inUse     []string
		want      []int
	}{
		"all equal":             {devices: of(nil, nil, nil), want: []int{0, 0, 0}},
		"none":                  {devices: ring(3)},
		"read":                  {devices: of(attrs{"index": 1}, attrs{"index": 2}, attrs{"index": 1}), want: []int{0, 1, 0}},
		"type":                  {devices: of(attrs{"index": 1}, attrs{"index": "1"}, attrs{"index": 1}), want: []int{0, 1, 0}},
		"not read":              {devices: of(attrs{"serial": "1"}, attrs{"serial": "2"}, nil), want: []int{0, 0, 0}},
		"by the selector":       {devices: of(attrs{"serial": "1"}, attrs{"serial": "2"}, nil), selectors: []string{serial + " != '1'"}, want: []int{0, 1, 1}},
		"failing selector":      {devices: of(nil, nil, attrs{"serial": 1}, attrs{"serial": 1}), selectors: []string{serial + " + '' == ''"}, want: []int{0, 0, 1, 2}},
		"in use":                {devices: of(nil, nil, nil), inUse: []string{"device-1"}, want: []int{0, 1, 0}},
		"capacity":              {devices: []resourceapi.Device{newDevice("", nil), newDevice("", nil, policy.Having("memory", "1Gi", nil)), newDevice("", nil)}, want: []int{0, 1, 0}},
		"empty lists and none":  {devices: of(attrs{"index": []int64{}}, attrs{"index": resourceapi.DeviceAttribute{}}, attrs{"index": []int64{}}, attrs{"index": resourceapi.DeviceAttribute{}}), want: []int{0, 1, 2, 1}},
		"empty lists, not read": {devices: of(attrs{"serial": []int64{}}, nil), want: []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{
				slices: []*sliceBuilder{slice("1", withNames(test.devices)...)}, inUse: test.inUse,
				claims: []*claimBuilder{claim("c").want("x", 2, test.selectors...).cel("e").define("e", "devices.exists(d, d.attributes['mla.example.com'].?index.orValue(0) == 0)")},
			}.search(t)
			require.Len(t, s.inventory.Candidates, len(test.devices))
			require.Equal(t, test.want, s.symmetry.classOf())
		})
	}
}

// Of devices that are the same to an expression which only evaluation tells to be false, one
// is tried.
func TestEqualDevicesAreTriedOnce(t *testing.T) {
	for _, test := range []struct {
		read  string
		tried int64
	}{{"serial", 1}, {"index", 8}} {
		devices := ring(8)
		for i := range devices {
			devices[i].Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: new(string)}
		}
		s := scenario{
			slices: []*sliceBuilder{slice("1", devices...)},
			claims: []*claimBuilder{claim("c").want("x", 1).cel("never").define("never", strings.ReplaceAll(unread, "index", test.read))},
		}.search(t)
		found, err := s.run()
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, []int64{test.tried, 8 - test.tried}, []int64{s.celConstraints[0].evaluations, s.symmetry.passedOver}, test.read)
	}
}
