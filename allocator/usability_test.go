// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

func withTaints(name string, effects ...resourceapi.DeviceTaintEffect) resourceapi.Device {
	return newDevice(name, attrs{}, func(d *resourceapi.Device) {
		for _, effect := range effects {
			d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: "sick", Value: "very", Effect: effect})
		}
	})
}

func TestTaints(t *testing.T) {
	tolerating := func(tolerations ...resourceapi.DeviceToleration) *claimBuilder {
		return claim("c").want("x", 1).edit(func(r *resourceapi.ExactDeviceRequest) { r.Tolerations = tolerations })
	}
	const schedule, execute = resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute
	off := with(func(f *structured.Features) { f.DeviceTaints = false })
	for name, test := range map[string]struct {
		taints   []resourceapi.DeviceTaintEffect
		claim    *claimBuilder
		features *structured.Features
		tainted  bool // whether the tainted device is allocated
	}{
		"none":                     {nil, tolerating(), nil, true},
		"NoSchedule":               {[]resourceapi.DeviceTaintEffect{schedule}, tolerating(), nil, false},
		"NoExecute":                {[]resourceapi.DeviceTaintEffect{execute}, tolerating(), nil, false},
		"None":                     {[]resourceapi.DeviceTaintEffect{resourceapi.DeviceTaintEffectNone}, tolerating(), nil, true},
		"unknown":                  {[]resourceapi.DeviceTaintEffect{"NoFun"}, tolerating(), nil, true},
		"unknown, then NoSchedule": {[]resourceapi.DeviceTaintEffect{"NoFun", schedule}, tolerating(), nil, false},
		"tolerated":                {[]resourceapi.DeviceTaintEffect{schedule, execute}, tolerating(resourceapi.DeviceToleration{Key: "sick", Operator: resourceapi.DeviceTolerationOpExists}), nil, true},
		"tolerated by value":       {[]resourceapi.DeviceTaintEffect{schedule}, tolerating(resourceapi.DeviceToleration{Key: "sick", Operator: resourceapi.DeviceTolerationOpEqual, Value: "very"}), nil, true},
		"other value":              {[]resourceapi.DeviceTaintEffect{schedule}, tolerating(resourceapi.DeviceToleration{Key: "sick", Operator: resourceapi.DeviceTolerationOpEqual, Value: "little"}), nil, false},
		"one of two tolerated":     {[]resourceapi.DeviceTaintEffect{schedule, execute}, tolerating(resourceapi.DeviceToleration{Key: "sick", Operator: resourceapi.DeviceTolerationOpExists, Effect: schedule}), nil, false},
		"each tolerated": {[]resourceapi.DeviceTaintEffect{schedule, execute}, tolerating(
			resourceapi.DeviceToleration{Key: "sick", Operator: resourceapi.DeviceTolerationOpExists, Effect: schedule},
			resourceapi.DeviceToleration{Key: "sick", Operator: resourceapi.DeviceTolerationOpExists, Effect: execute}), nil, true},
		"admin access":            {[]resourceapi.DeviceTaintEffect{schedule}, tolerating().admin(), nil, false},
		"feature off":             {[]resourceapi.DeviceTaintEffect{schedule}, tolerating(), off, true},
		"feature off, tolerating": {[]resourceapi.DeviceTaintEffect{schedule}, tolerating(resourceapi.DeviceToleration{Operator: resourceapi.DeviceTolerationOpExists}), off, true},
	} {
		t.Run(name, func(t *testing.T) {
			want := "x=healthy"
			if test.tainted {
				want = "x=tainted"
			}
			scenario{
				features: test.features, claims: []*claimBuilder{test.claim},
				slices: []*sliceBuilder{slice("1", withTaints("tainted", test.taints...), newDevice("healthy", nil))},
			}.requireDevices(t, want)
		})
	}
}

func TestAllWithTaint(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", withTaints("tainted", resourceapi.DeviceTaintEffectNoSchedule), newDevice("healthy", nil))},
		claims: []*claimBuilder{claim("c").wantAll("x")},
		opts:   []Option{WithReasons()},
	}.requireErrorOnNode(t, "request x: 1 of 2 devices, all are wanted")
}

func TestBindingConditions(t *testing.T) {
	off := with(func(f *structured.Features) { f.DeviceBindingAndStatus = false })
	bound := newDevice("bound", nil, func(d *resourceapi.Device) { d.BindingConditions = []string{"ready"} })
	s := scenario{slices: []*sliceBuilder{slice("1", bound, newDevice("free", nil))}, claims: []*claimBuilder{claim("c").want("x", 1)}}
	s.requireDevices(t, "x=bound") // the order of devices within a pool stays
	s.features = off
	s.requireDevices(t, "x=free")
	s.claims = []*claimBuilder{claim("c").wantAll("x")}
	s.requireDevices(t, "x=free") // what can't be selected is none of "all"
}

func TestOptionalNodeOperations(t *testing.T) {
	off := with(func(f *structured.Features) { f.OptionalNodeOperations = false })
	declaring := newNode(nodeName)
	declaring.Status.DeclaredFeatures = []string{"Other", "DRAOptionalNodeOperations"}
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(1)...).edit(func(s *resourceapi.ResourceSliceSpec) {
			s.SkipNodeOperations = make([]resourceapi.SkipNodeOperation, 1)
		})},
		claims: []*claimBuilder{claim("c").want("x", 1)},
	}
	s.requireNone(t)
	s.node = declaring
	s.requireDevices(t, "x=mla-0")
	s.features = off
	s.requireNone(t)
}

// Devices that consume counters can't be had without the feature. They are
// devices of "all" nevertheless.
func TestDevicesWithCountersWithoutTheFeature(t *testing.T) {
	s := scenario{
		features: with(func(f *structured.Features) { f.PartitionableDevices = false }),
		slices:   []*sliceBuilder{slice("1", part("part", "1Gi"), newDevice("whole", nil))},
		claims:   []*claimBuilder{claim("c").want("x", 1)},
	}
	s.requireDevices(t, "x=whole")
	s.claims = []*claimBuilder{claim("c").wantAll("x")}
	s.requireNone(t)
}
