// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	counterSet        = "counter-set-1"
	missingCounterSet = "counter-set-missing"
	counter           = "memory"
)

// counterSlice draws a slice with shared counters and, as the API demands, no
// devices. Rarely the same set is defined twice, which makes the pool invalid.
func (p *poolDraw) counterSlice() *resourceapi.ResourceSlice {
	slice := p.emptySlice(latestGeneration)
	p.place().applyToSlice(slice)
	set := resourceapi.CounterSet{
		Name:     counterSet,
		Counters: map[string]resourceapi.Counter{counter: {Value: resource.MustParse("8Gi")}},
	}
	slice.Spec.SharedCounters = []resourceapi.CounterSet{set}
	if p.rarely() {
		slice.Spec.SharedCounters = append(slice.Spec.SharedCounters, set)
	}
	return slice
}

// consumption draws what a device consumes of shared counters. While the feature
// is on it is always of a set that does not exist, which makes the pool invalid:
// devices that do consume counters can't be compared yet.
func (p *poolDraw) consumption() []resourceapi.DeviceCounterConsumption {
	set := missingCounterSet
	switch {
	case p.Features.PartitionableDevices && !p.oneIn2To(9):
		return nil
	case !p.Features.PartitionableDevices:
		if !p.rarely() {
			return nil
		}
		set = counterSet
	}
	return []resourceapi.DeviceCounterConsumption{{
		CounterSet: set,
		Counters:   map[string]resourceapi.Counter{counter: {Value: resource.MustParse("1Gi")}},
	}}
}
