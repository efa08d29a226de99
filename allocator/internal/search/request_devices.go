// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// RequestDevices lists the devices of a node for one request, as if there were no other requests and constraints.
type RequestDevices struct {
	Claim *resourceapi.ResourceClaim
	// Request is the name of the request, or "request/subrequest" for an alternative.
	Request string
	// Wanted is the number of devices to allocate.
	Wanted int
	// Matching holds the devices that the request could get if no device were in use. Free holds the matching devices available
	// now.
	Matching, Free []structured.DeviceID
	// Unusable holds devices that pass the selectors but can't be used. They have a taint that the request does not tolerate,
	// or need a feature that is off or that the node lacks.
	Unusable []structured.DeviceID
	// Failed holds the devices that a selector failed for. No other field includes these devices.
	Failed []structured.DeviceID
}

func (s *Search) devicesFor(r *Request) (RequestDevices, error) {
	result := RequestDevices{Claim: r.Claim, Request: r.Name, Wanted: r.Count}
	for _, c := range s.Inventory.Candidates {
		if err := s.Work.Cancelled(); err != nil {
			return result, err
		}
		matches, err := r.isSelected(c)
		if err != nil {
			result.Failed = append(result.Failed, c.ID)
			continue
		}
		if !matches {
			continue
		}
		if !s.Available.IsUsable(&r.Request, c) {
			result.Unusable = append(result.Unusable, c.ID)
			continue
		}
		result.Matching = append(result.Matching, c.ID)
		if s.isFree(r, c) {
			result.Free = append(result.Free, c.ID)
		}
	}
	return result, nil
}

// RequestDevices examines all devices of the node for each request of the claims.
func (s *Search) RequestDevices() ([]RequestDevices, error) {
	var result []RequestDevices
	for _, requests := range s.Requests {
		for _, all := range requests {
			for _, r := range all {
				devices, err := s.devicesFor(r)
				if err != nil {
					return nil, err
				}
				result = append(result, devices)
			}
		}
	}
	return result, nil
}
