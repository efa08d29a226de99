// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// coverage lists the requests that a constraint applies to.
type coverage []coveredRequest

type coveredRequest struct {
	// alternatives has a single entry for a request without alternatives.
	alternatives []alternative
	// optional is set if the constraint does not cover all alternatives of the request. If the claim gets another alternative,
	// the request contributes no devices to the set.
	optional bool
}

type alternative struct {
	// name is "request" or "request/alternative".
	name string
	// count is the requested number of devices. all is set for a request with allocationMode All.
	count int
	all   bool
}

// coveredRequests returns the named requests, or all requests if names is empty.
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

// newAlternative applies the API server's defaults, because an object from a file may lack them.
func newAlternative(name string, mode resourceapi.DeviceAllocationMode, count int64) alternative {
	if mode == resourceapi.DeviceAllocationModeAll {
		return alternative{name: name, all: true}
	}
	return alternative{name: name, count: int(max(1, min(count, resourceapi.AllocationResultsMaxSize)))}
}

// sizes returns all possible numbers of devices in a set, in ascending order. If a request has allocationMode All, the sizes
// depend on the nodes; without nodes, the result is empty. Sizes above the limit of a claim are left out, unless all sizes are
// above it.
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

// dependsOnNodes reports whether a request has allocationMode All, so that its number of devices differs between nodes.
func (c coverage) dependsOnNodes() bool {
	return slices.ContainsFunc(c, func(r coveredRequest) bool {
		return slices.ContainsFunc(r.alternatives, func(a alternative) bool { return a.all })
	})
}

// sums returns the possible sizes of a set on a node: all sums of one possible count for each request.
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

// least returns the smallest possible size of a set on a node.
func (c coverage) least(on *candidates) int {
	return slices.Min(append(slices.Collect(maps.Keys(c.sums(on))), math.MaxInt))
}

// counts returns the possible numbers of devices for a request. on is required only for a request with allocationMode All.
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
