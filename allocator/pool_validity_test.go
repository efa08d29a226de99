// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

func TestPoolsWithCounters(t *testing.T) {
	gpu := func(name string) *sliceBuilder {
		return providing(name, map[string]amounts{"gpu": {"memory": "1"}})
	}
	consumer := func(name, set, counter string, groups ...string) resourceapi.Device {
		return newDevice(name, nil, consuming(set, amounts{counter: "1"}, groups...))
	}
	off := *with(func(f *structured.Features) { f.PartitionableDevices = false })
	groupsOff := *with(func(f *structured.Features) { f.CompatibilityGroups = false })
	for name, test := range map[string]struct {
		features structured.Features
		slices   []*sliceBuilder
		want     []string
	}{
		"valid": {
			features: allOn,
			slices:   []*sliceBuilder{gpu("1"), slice("2", consumer("a", "gpu", "memory")).pool("pool-1", 1, 2)},
			want:     []string{"mla.example.com/pool-1/a"},
		},
		"counters on another node": {
			features: allOn,
			slices:   []*sliceBuilder{gpu("1").onNode("node-2"), slice("2", consumer("a", "gpu", "memory")).pool("pool-1", 1, 2)},
			want:     []string{"mla.example.com/pool-1/a"},
		},
		"duplicate set": {
			features: allOn,
			slices:   []*sliceBuilder{gpu("1"), gpu("2")},
			want:     []string{"mla.example.com/pool-1 invalid: duplicate counter set name gpu"},
		},
		"duplicate set on another node": {
			features: allOn,
			slices: []*sliceBuilder{
				gpu("1").pool("pool-1", 1, 3), gpu("2").pool("pool-1", 1, 3).onNode("node-2"), slice("3", newDevice("a", nil)).pool("pool-1", 1, 3),
			},
			want: []string{"mla.example.com/pool-1 invalid: duplicate counter set name gpu"},
		},
		"unknown set": {
			features: allOn,
			slices:   []*sliceBuilder{slice("1", consumer("a", "gpu", "memory"))},
			want:     []string{"mla.example.com/pool-1 invalid: counter set gpu not found"},
		},
		"unknown counter": {
			features: allOn,
			slices:   []*sliceBuilder{gpu("1"), slice("2", consumer("a", "gpu", "cores")).pool("pool-1", 1, 2)},
			want:     []string{"mla.example.com/pool-1 invalid: counter cores not found in counter set gpu"},
		},
		"unknown counter on another node": {
			features: allOn,
			slices: []*sliceBuilder{
				gpu("1").pool("pool-1", 1, 3), slice("2").pool("pool-1", 1, 3),
				slice("3", consumer("a", "gpu", "cores")).pool("pool-1", 1, 3).onNode("node-2"),
			},
			want: []string{"mla.example.com/pool-1 invalid: counter cores not found in counter set gpu"},
		},
		"devices beside counters are none": {
			features: allOn,
			slices: []*sliceBuilder{gpu("1").pool("pool-1", 1, 1).edit(func(s *resourceapi.ResourceSliceSpec) {
				s.Devices = []resourceapi.Device{newDevice("a", nil)}
			})},
		},
		"feature off: nothing is checked": {
			features: off,
			slices:   []*sliceBuilder{slice("1", consumer("a", "gpu", "memory"))},
			want:     []string{"mla.example.com/pool-1/a"},
		},
		"feature off: slice with counters is ignored": {
			features: off,
			slices:   []*sliceBuilder{gpu("1"), slice("2", newDevice("a", nil)).pool("pool-1", 1, 2)},
			// It still counts as published.
			want: []string{"mla.example.com/pool-1/a"},
		},
		"feature off: per-device node selection": {
			features: off,
			slices:   []*sliceBuilder{slice("1", newDevice("a", nil, onAny)).perDevice()},
		},
		"groups off: not counted": {
			features: groupsOff,
			slices: []*sliceBuilder{
				gpu("1").pool("pool-1", 1, 3), slice("2", consumer("a", "gpu", "memory", "group")).pool("pool-1", 1, 3), slice("3").pool("pool-1", 1, 3),
			},
			want: []string{"mla.example.com/pool-1 incomplete"},
		},
		"groups off: not counted on another node": {
			features: groupsOff,
			slices: []*sliceBuilder{
				gpu("1").pool("pool-1", 1, 3), slice("2", consumer("a", "gpu", "memory")).pool("pool-1", 1, 3),
				slice("3", consumer("b", "gpu", "memory", "group")).pool("pool-1", 1, 3).onNode("node-2"),
			},
			want: []string{"mla.example.com/pool-1 incomplete"},
		},
		"groups on": {
			features: allOn,
			slices:   []*sliceBuilder{gpu("1"), slice("2", consumer("a", "gpu", "memory", "group")).pool("pool-1", 1, 2)},
			want:     []string{"mla.example.com/pool-1/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, describePools(t, test.features, nil, test.slices))
		})
	}
}
