// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math/big"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// demand has upper bounds for the device sets that a constraint may cover: their size and their number.
type demand struct {
	// devices is the maximum number of devices in a set.
	devices int
	// sets is the maximum number of sets: the product over the requests, as if two requests could get the same device.
	sets *big.Int
}

// demandOf returns the demand of the covered requests, or of all requests if covered is empty. If a request has alternatives,
// it takes the maximum number of devices and the maximum number of sets, perhaps from two different alternatives. free is the
// assumed number of devices that a request can choose from.
func demandOf(devices *resourceapi.DeviceClaim, covered []string, free int) demand {
	result := demand{sets: big.NewInt(1)}
	for i := range devices.Requests {
		most := mostOf(&devices.Requests[i], covered, free)
		result.devices = min(result.devices+most.devices, resourceapi.AllocationResultsMaxSize)
		result.sets.Mul(result.sets, most.sets)
	}
	return result
}

func mostOf(request *resourceapi.DeviceRequest, covered []string, free int) demand {
	result := demand{sets: big.NewInt(1)}
	add := func(mode resourceapi.DeviceAllocationMode, count int64, names ...string) {
		isCovered := func(name string) bool { return slices.Contains(covered, name) }
		if len(covered) > 0 && !slices.ContainsFunc(names, isCovered) {
			return
		}
		one := demandFor(mode, count, free)
		result.devices = max(result.devices, one.devices)
		if one.sets.Cmp(result.sets) > 0 {
			result.sets = one.sets
		}
	}
	if exactly := request.Exactly; exactly != nil {
		add(exactly.AllocationMode, exactly.Count, request.Name)
	}
	for i := range request.FirstAvailable {
		alternative := &request.FirstAvailable[i]
		add(alternative.AllocationMode, alternative.Count, request.Name, request.Name+"/"+alternative.Name)
	}
	return result
}

// demandFor returns the demand of one request. A request for all devices has only one set, with up to as many devices as a
// claim can have. A request without mode and count asks for one device.
func demandFor(mode resourceapi.DeviceAllocationMode, count int64, free int) demand {
	if mode == resourceapi.DeviceAllocationModeAll {
		return demand{resourceapi.AllocationResultsMaxSize, big.NewInt(1)}
	}
	if count > resourceapi.AllocationResultsMaxSize {
		// No claim can have so many devices, so the search never looks for such sets.
		return demand{resourceapi.AllocationResultsMaxSize, new(big.Int)}
	}
	count = max(1, count)
	return demand{int(count), new(big.Int).Binomial(int64(free), count)}
}
