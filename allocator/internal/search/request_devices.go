// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// RequestDevices are the devices that a node has for a request, whatever other requests
// and constraints want.
type RequestDevices struct {
	Claim *resourceapi.ResourceClaim
	// Request is its name, "request/subrequest" for an alternative.
	Request string
	// Wanted is how many are to be allocated.
	Wanted int
	// Matching devices pass the selectors and can be used: those that the request could
	// have if nothing were in use. Free are those of them that it can have now.
	Matching, Free []structured.DeviceID
	// Unusable devices pass the selectors, but have taints that the request does not tolerate, or need a feature that
	// is off or that the node does not have.
	Unusable []structured.DeviceID
	// Failed are devices that are not counted because a selector fails for them.
	Failed []structured.DeviceID
}

func (s *Search) devicesFor(r *Request) (RequestDevices, error) {
	result := RequestDevices{Claim: r.Claim, Request: r.Name, Wanted: r.Count}
	for _, c := range s.Inventory.Candidates {
		if err := s.Work.Cancelled(); err != nil {
			return result, err
		}
		matches, err := r.IsSelected(c)
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

// RequestDevices looks at all devices of the node for each request of the claims.
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
