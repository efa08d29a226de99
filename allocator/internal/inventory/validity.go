// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A pool is valid if its slices agree on how many they are, its device names are
// unique, and the counters that devices consume are defined once. The API server can't
// check any of it, because slices are objects of their own.

// contradictoryCount compares the slices of one generation.
func contradictoryCount(published []*resourceapi.ResourceSlice) string {
	for _, slice := range published {
		if slice.Spec.Pool.ResourceSliceCount != published[0].Spec.Pool.ResourceSliceCount {
			return "resourceSliceCount is not the same in all slices"
		}
	}
	return ""
}

func duplicateDevice(slices []*resourceapi.ResourceSlice) string {
	count := 0
	for _, slice := range slices {
		count += len(slice.Spec.Devices)
	}
	names := make(sets.Set[string], count)
	for _, slice := range slices {
		for i := range slice.Spec.Devices {
			name, before := slice.Spec.Devices[i].Name, len(names)
			if names[name] = (sets.Empty{}); len(names) == before {
				return "duplicate device name " + name
			}
		}
	}
	return ""
}

// counterSetsOf collects the counter sets of a pool, or says which counter is
// defined twice or used without being defined.
func counterSetsOf(withCounters, withDevices []*resourceapi.ResourceSlice) (counterSets map[string]map[string]resourceapi.Counter, invalid string) {
	counterSets = make(map[string]map[string]resourceapi.Counter)
	for _, slice := range withCounters {
		for _, counterSet := range slice.Spec.SharedCounters {
			if _, found := counterSets[counterSet.Name]; found {
				return nil, "duplicate counter set name " + counterSet.Name
			}
			counterSets[counterSet.Name] = counterSet.Counters
		}
	}
	for _, slice := range withDevices {
		for i := range slice.Spec.Devices {
			for _, consumption := range slice.Spec.Devices[i].ConsumesCounters {
				if reason := undefinedCounter(counterSets, consumption); reason != "" {
					return nil, reason
				}
			}
		}
	}
	return counterSets, ""
}

func undefinedCounter(counterSets map[string]map[string]resourceapi.Counter, consumption resourceapi.DeviceCounterConsumption) string {
	counters, found := counterSets[consumption.CounterSet]
	if !found {
		return fmt.Sprintf("counter set %s not found", consumption.CounterSet)
	}
	for name := range consumption.Counters {
		if _, found := counters[name]; !found {
			return fmt.Sprintf("counter %s not found in counter set %s", name, consumption.CounterSet)
		}
	}
	return ""
}
