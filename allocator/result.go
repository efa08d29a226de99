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
		choices := s.found().choicesOf(i)
		selector, err := nodeSelector(s.node.Name, choices)
		if err != nil {
			return nil, fmt.Errorf("create NodeSelector for claim %s: %w", claim.Name, err)
		}
		results[i] = resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{
				Results: deviceResults(choices, s.allocator.features.DeviceBindingAndStatus),
				Config:  configuration(claim, s.found().chosen(s.requests, i)),
			},
			NodeSelector: selector,
		}
	}
	return results, nil
}

// deviceResults are the devices of a claim, with their binding conditions if the feature is on.
func deviceResults(choices []choice, bindingConditions bool) []resourceapi.DeviceRequestAllocationResult {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(choices))
	for i, c := range choices {
		results[i] = resourceapi.DeviceRequestAllocationResult{
			Request:            c.request.Name,
			Driver:             c.ID.Driver.String(),
			Pool:               c.ID.Pool.String(),
			Device:             c.ID.Device.String(),
			Tolerations:        c.request.Spec.Tolerations,
			SkipNodeOperations: c.Slice.Spec.SkipNodeOperations,
			ShareID:            c.Share,
		}
		if len(c.Consumed) > 0 {
			results[i].ConsumedCapacity = c.Consumed
		}
		if c.request.AdminAccess() {
			results[i].AdminAccess = ptr.To(true)
		}
		if bindingConditions {
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
		if len(c.Requests) == 0 || slices.ContainsFunc(requests, func(r *request) bool { return r.IsNamed(c.Requests) }) {
			config = append(config, resourceapi.DeviceAllocationConfiguration{
				Source:              resourceapi.AllocationConfigSourceClaim,
				Requests:            c.Requests,
				DeviceConfiguration: c.DeviceConfiguration,
			})
		}
	}
	for i := range config {
		if !slices.ContainsFunc(requests, func(r *request) bool { return !r.IsNamed(config[i].Requests) }) {
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
		known, found := added[r.Class.Name]
		if found {
			for i := known.start; i < known.end; i++ {
				config[i].Requests = append(config[i].Requests, r.Name)
			}
			continue
		}
		start := len(config)
		for _, c := range r.Class.Spec.Config {
			config = append(config, resourceapi.DeviceAllocationConfiguration{
				Source:              resourceapi.AllocationConfigSourceClass,
				Requests:            []string{r.Name},
				DeviceConfiguration: c.DeviceConfiguration,
			})
		}
		added[r.Class.Name] = part{start, len(config)}
	}
	return config
}
