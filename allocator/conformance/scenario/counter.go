// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	missingCounterSet = "counter-set-missing"
	memoryCounter     = "memory"
	slotCounter       = "slots"
)

// counterSets draws the shared counters of the pool: no counter set, one, or two.
func (p *poolDraw) counterSets() []resourceapi.CounterSet {
	if !p.mostly(counterTheme, groupTheme) || !p.Features.PartitionableDevices && !p.oneIn2To(3) {
		return nil
	}
	names := []string{"counter-set-1", "counter-set-2"}
	var result []resourceapi.CounterSet
	for _, name := range names[:pick(p.generator, 1, 2, 2)] {
		counters := map[string]resourceapi.Counter{memoryCounter: counter(pick(p.generator, "8Gi", "12Gi", "4Gi", "6Gi"))}
		if p.maybe() {
			counters[slotCounter] = counter(pick(p.generator, "3", "4"))
		}
		result = append(result, resourceapi.CounterSet{Name: name, Counters: counters})
	}
	return result
}

func counter(value string) resourceapi.Counter {
	return resourceapi.Counter{Value: resource.MustParse(value)}
}

// counterSlices draws the slices with the counter sets of the pool, in one slice or in several. These slices have no devices,
// as the API demands. They may be for other nodes. In rare cases a counter set occurs twice, which makes the pool invalid.
func (p *poolDraw) counterSlices() []*resourceapi.ResourceSlice {
	if len(p.sets) == 0 {
		return nil
	}
	parts := [][]resourceapi.CounterSet{p.sets}
	if len(p.sets) > 1 && p.maybe() {
		parts = [][]resourceapi.CounterSet{p.sets[:1], p.sets[1:]}
	}
	var result []*resourceapi.ResourceSlice
	for _, part := range parts {
		slice := p.emptySlice(latestGeneration)
		slice.Spec.SharedCounters = part
		if p.oneIn2To(5) {
			slice.Spec.SharedCounters = append(part[:1:1], part...)
		}
		// A slice without devices can't select nodes for each device.
		switch here := p.place(); {
		case p.oneIn2To(3):
			p.placeElsewhere().applyToSlice(slice)
		case here.perDevice != nil:
			p.placeHere().applyToSlice(slice)
		default:
			here.applyToSlice(slice)
		}
		result = append(result, slice)
	}
	return result
}

// consumption draws the counters that a device consumes.
func (p *poolDraw) consumption() []resourceapi.DeviceCounterConsumption {
	if p.oneIn2To(10) {
		return []resourceapi.DeviceCounterConsumption{{
			CounterSet: missingCounterSet,
			Counters:   map[string]resourceapi.Counter{memoryCounter: counter("1Gi")},
		}}
	}
	if len(p.sets) == 0 || p.oneIn2To(3) {
		return nil
	}
	from := p.sets[:1]
	switch p.fairly(2) {
	case 2:
		from = p.sets
	case 3:
		from = p.sets[len(p.sets)-1:]
	}
	var result []resourceapi.DeviceCounterConsumption
	for _, set := range from {
		consumption := resourceapi.DeviceCounterConsumption{
			CounterSet:          set.Name,
			Counters:            map[string]resourceapi.Counter{memoryCounter: counter(pick(p.generator, "2Gi", "1Gi", "3Gi", "4Gi"))},
			CompatibilityGroups: p.compatibilityGroups(),
		}
		if _, found := set.Counters[slotCounter]; found && !p.sometimes() {
			consumption.Counters[slotCounter] = counter(pick(p.generator, "1", "2", "0"))
		}
		if p.oneIn2To(9) {
			consumption.Counters["missing"] = counter("1")
		}
		result = append(result, consumption)
	}
	return result
}

// compatibilityGroups draws the groups of a device for one counter set. If the feature is off, allocators ignore such slices.
func (p *poolDraw) compatibilityGroups() []string {
	if p.Simple || !p.mostly(groupTheme) || !p.Features.CompatibilityGroups && !p.maybe() {
		return nil
	}
	return pick(p.generator, []string{"group-a"}, []string{"group-a", "group-b"}, []string{"group-b"}, []string{"group-c"})
}
