// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// results turns the solution into one allocation result a claim.
func (s *search) results() ([]resourceapi.AllocationResult, error) {
	results := make([]resourceapi.AllocationResult, len(s.claims))
	for i, claim := range s.claims {
		choices := s.choicesOf(i)
		selector, err := nodeSelector(s.node.Name, choices)
		if err != nil {
			return nil, fmt.Errorf("create NodeSelector for claim %s: %w", claim.Name, err)
		}
		results[i] = resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{
				Results: s.deviceResults(choices),
				Config:  configuration(claim, s.chosen(i)),
			},
			NodeSelector: selector,
		}
	}
	return results, nil
}

// chosen returns the requests of a claim, of alternatives the one that was met.
func (s *search) chosen(claim int) []*request {
	start := 0
	for _, requests := range s.requests[:claim] {
		start += len(requests)
	}
	return s.decisions[start : start+len(s.requests[claim])]
}

// choicesOf returns what was taken for one claim: the search takes one claim
// after the other.
func (s *search) choicesOf(claim int) []choice {
	start := 0
	for start < len(s.choices) && s.choices[start].claim < claim {
		start++
	}
	end := start
	for end < len(s.choices) && s.choices[end].claim == claim {
		end++
	}
	return s.choices[start:end]
}

func (s *search) deviceResults(choices []choice) []resourceapi.DeviceRequestAllocationResult {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(choices))
	for i, c := range choices {
		results[i] = resourceapi.DeviceRequestAllocationResult{
			Request:            c.request.name,
			Driver:             c.ID.Driver.String(),
			Pool:               c.ID.Pool.String(),
			Device:             c.ID.Device.String(),
			Tolerations:        c.request.spec.Tolerations,
			SkipNodeOperations: c.Slice.Spec.SkipNodeOperations,
			ShareID:            c.share,
		}
		if len(c.consumed) > 0 {
			results[i].ConsumedCapacity = c.consumed
		}
		if c.request.adminAccess() {
			results[i].AdminAccess = ptr.To(true)
		}
		if s.allocator.features.DeviceBindingAndStatus {
			results[i].BindingConditions = c.Device.BindingConditions
			results[i].BindingFailureConditions = c.Device.BindingFailureConditions
		}
	}
	return results
}

// configuration collects the configuration of the classes, each once, and then
// that of the claim. A configuration for all requests names none.
func configuration(claim *resourceapi.ResourceClaim, requests []*request) []resourceapi.DeviceAllocationConfiguration {
	config := classConfiguration(requests)
	for _, c := range claim.Spec.Devices.Config {
		if len(c.Requests) == 0 || slices.ContainsFunc(requests, func(r *request) bool { return r.isNamed(c.Requests) }) {
			config = append(config, resourceapi.DeviceAllocationConfiguration{
				Source:              resourceapi.AllocationConfigSourceClaim,
				Requests:            c.Requests,
				DeviceConfiguration: c.DeviceConfiguration,
			})
		}
	}
	for i := range config {
		if !slices.ContainsFunc(requests, func(r *request) bool { return !r.isNamed(config[i].Requests) }) {
			config[i].Requests = nil
		}
	}
	return config
}

func classConfiguration(requests []*request) []resourceapi.DeviceAllocationConfiguration {
	var config []resourceapi.DeviceAllocationConfiguration
	type part struct{ start, end int }
	added := make(map[string]part)
	for _, r := range requests {
		known, found := added[r.class.Name]
		if found {
			for i := known.start; i < known.end; i++ {
				config[i].Requests = append(config[i].Requests, r.name)
			}
			continue
		}
		start := len(config)
		for _, c := range r.class.Spec.Config {
			config = append(config, resourceapi.DeviceAllocationConfiguration{
				Source:              resourceapi.AllocationConfigSourceClass,
				Requests:            []string{r.name},
				DeviceConfiguration: c.DeviceConfiguration,
			})
		}
		added[r.class.Name] = part{start, len(config)}
	}
	return config
}
