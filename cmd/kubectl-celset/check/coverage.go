// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// coverage is the requests that a constraint covers.
type coverage []coveredRequest

type coveredRequest struct {
	// alternatives has one entry for a request without alternatives.
	alternatives []alternative
	// optional: there are alternatives that are not covered, which contribute no devices.
	optional bool
}

type alternative struct {
	// name is "request" or "request/alternative".
	name string
	// count is how many devices are wanted; all: as many as there are.
	count int
	all   bool
}

// coveredRequests are those with the names, all if there are none.
func coveredRequests(devices *resourceapi.DeviceClaim, names []string) coverage {
	covers := func(name, parent string) bool {
		return len(names) == 0 || slices.Contains(names, name) || slices.Contains(names, parent)
	}
	var result coverage
	for i := range devices.Requests {
		request := &devices.Requests[i]
		covered := coveredRequest{}
		if exact := request.Exactly; exact != nil && covers(request.Name, request.Name) {
			covered.alternatives = append(covered.alternatives, newAlternative(request.Name, exact.AllocationMode, exact.Count))
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			if name := request.Name + "/" + sub.Name; covers(name, request.Name) {
				covered.alternatives = append(covered.alternatives, newAlternative(name, sub.AllocationMode, sub.Count))
			} else {
				covered.optional = true
			}
		}
		if len(covered.alternatives) > 0 {
			result = append(result, covered)
		}
	}
	return result
}

// newAlternative applies the defaults of the API, for files that were not stored.
func newAlternative(name string, mode resourceapi.DeviceAllocationMode, count int64) alternative {
	if mode == resourceapi.DeviceAllocationModeAll {
		return alternative{name: name, all: true}
	}
	return alternative{name: name, count: int(max(1, min(count, resourceapi.AllocationResultsMaxSize)))}
}

// sizes are all numbers of devices that a set can have, in ascending order. Where a request is for all devices the nodes decide;
// without nodes there is no answer. Sizes that are more than a claim can have are left out if there are others.
func (c coverage) sizes(on []candidates) []int {
	all := map[int]bool{}
	if len(on) == 0 || !c.dependsOnNodes() {
		on = []candidates{{}}
	}
	for i := range on {
		maps.Copy(all, c.sums(&on[i]))
	}
	delete(all, 0)
	sizes := slices.Sorted(maps.Keys(all))
	if possible := slices.DeleteFunc(slices.Clone(sizes), func(size int) bool { return size > resourceapi.AllocationResultsMaxSize }); len(possible) > 0 {
		return possible
	}
	return sizes
}

// dependsOnNodes reports whether a request is for all devices.
func (c coverage) dependsOnNodes() bool {
	return slices.ContainsFunc(c, func(r coveredRequest) bool {
		return slices.ContainsFunc(r.alternatives, func(a alternative) bool { return a.all })
	})
}

// sums are the numbers of devices that the requests can get on a node. Each is the sum of one alternative of each request.
func (c coverage) sums(on *candidates) map[int]bool {
	sums := map[int]bool{0: true}
	for _, request := range c {
		next := make(map[int]bool)
		for _, count := range request.counts(on) {
			for sum := range sums {
				next[sum+count] = true
			}
		}
		sums = next
	}
	return sums
}

// least is the least number of devices that the requests can get on a node.
func (c coverage) least(on *candidates) int {
	return slices.Min(append(slices.Collect(maps.Keys(c.sums(on))), math.MaxInt))
}

// counts are the numbers of devices that a request can get. Without a node nothing is known of a request for all devices.
func (r coveredRequest) counts(on *candidates) []int {
	var counts []int
	if r.optional {
		counts = append(counts, 0)
	}
	for _, alternative := range r.alternatives {
		if !alternative.all {
			counts = append(counts, alternative.count)
		} else if on.requests != nil {
			counts = append(counts, len(on.requests[alternative.name].Matching))
		}
	}
	return counts
}
