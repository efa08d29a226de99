// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/apis/compat"
)

// Solution holds the alternatives and devices that a search has chosen, in the order of claims, requests and devices.
type Solution struct {
	// Decisions holds the alternative that the search tries, for each request up to the current one, over all claims in order.
	Decisions []*Request
	// Choices holds the devices that the search has taken.
	Choices []Choice
}

// Choice is a device that was taken for a request.
type Choice struct {
	Claim   int
	Request *Request
	*inventory.Candidate
	availability.Reservation
}

// chosen returns the chosen alternative of each request of a claim. all holds the requests of all claims.
func (s *Solution) chosen(all [][]Alternatives, claim int) []*Request {
	start := 0
	for _, requests := range all[:claim] {
		start += len(requests)
	}
	return s.Decisions[start : start+len(all[claim])]
}

// tried returns the alternative that the search currently tries for a request of a claim. It returns nil if the search has not
// reached the request. all holds the requests of all claims.
func (s *Solution) tried(all [][]Alternatives, claim, request int) *Request {
	for _, requests := range all[:claim] {
		request += len(requests)
	}
	if request >= len(s.Decisions) {
		return nil
	}
	return s.Decisions[request]
}

// choicesOf returns the devices of one claim. They are consecutive, because the search handles one claim after the other.
func (s *Solution) choicesOf(claim int) []Choice {
	start := 0
	for start < len(s.Choices) && s.Choices[start].Claim < claim {
		start++
	}
	end := start
	for end < len(s.Choices) && s.Choices[end].Claim == claim {
		end++
	}
	return s.Choices[start:end]
}

// Results returns an allocation result for each claim.
func (s *Search) Results(of *Solution) ([]resourceapi.AllocationResult, error) {
	results := make([]resourceapi.AllocationResult, len(s.Claims))
	for i, claim := range s.Claims {
		choices := of.choicesOf(i)
		selector, err := nodeSelector(s.Node.Name, choices)
		if err != nil {
			return nil, fmt.Errorf("create NodeSelector for claim %s: %w", claim.Name, err)
		}
		results[i] = resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{
				Results: deviceResults(choices, s.Planner.Features.DeviceBindingAndStatus),
				Config:  configuration(claim, of.chosen(s.Requests, i)),
			},
			NodeSelector: selector,
		}
	}
	return results, nil
}

// deviceResults returns the allocation results for the devices of a claim, with binding conditions if the feature is on.
func deviceResults(choices []Choice, bindingConditions bool) []resourceapi.DeviceRequestAllocationResult {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(choices))
	for i, c := range choices {
		results[i] = resourceapi.DeviceRequestAllocationResult{
			Request:     c.Request.Name,
			Driver:      c.ID.Driver.String(),
			Pool:        c.ID.Pool.String(),
			Device:      c.ID.Device.String(),
			Tolerations: c.Request.Spec.Tolerations,
			ShareID:     c.Share,
		}
		compat.CopySkippedNodeOperations(&results[i], &c.Slice.Spec)
		if len(c.Consumed) > 0 {
			results[i].ConsumedCapacity = c.Consumed
		}
		if c.Request.AdminAccess() {
			results[i].AdminAccess = ptr.To(true)
		}
		if bindingConditions {
			results[i].BindingConditions = c.Device.BindingConditions
			results[i].BindingFailureConditions = c.Device.BindingFailureConditions
		}
	}
	return results
}

// configuration returns the configurations of the classes followed by the configurations of the claim. A class that several
// requests use is included once. If a configuration applies to all requests, its list of requests is empty.
func configuration(claim *resourceapi.ResourceClaim, requests []*Request) []resourceapi.DeviceAllocationConfiguration {
	config := classConfiguration(requests)
	for _, c := range claim.Spec.Devices.Config {
		if len(c.Requests) == 0 || slices.ContainsFunc(requests, func(r *Request) bool { return r.IsNamed(c.Requests) }) {
			config = append(config, resourceapi.DeviceAllocationConfiguration{
				Source:              resourceapi.AllocationConfigSourceClaim,
				Requests:            c.Requests,
				DeviceConfiguration: c.DeviceConfiguration,
			})
		}
	}
	for i := range config {
		if !slices.ContainsFunc(requests, func(r *Request) bool { return !r.IsNamed(config[i].Requests) }) {
			config[i].Requests = nil
		}
	}
	return config
}

func classConfiguration(requests []*Request) []resourceapi.DeviceAllocationConfiguration {
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

// nodeSelector returns a selector for the nodes where all devices can be used. If a device is tied to a node, the selector
// selects only this node. Otherwise it combines the selectors of the devices. It is nil if all nodes can use the devices.
func nodeSelector(node string, choices []Choice) (*v1.NodeSelector, error) {
	var term v1.NodeSelectorTerm
	for _, c := range choices {
		name, selector := c.Slice.Spec.NodeName, c.Slice.Spec.NodeSelector
		if ptr.Deref(c.Slice.Spec.PerDeviceNodeSelection, false) {
			name, selector = c.Device.NodeName, c.Device.NodeSelector
		}
		if name != nil || ptr.Deref(c.Device.BindsToNode, false) {
			return onlyOn(node), nil
		}
		if selector == nil || len(selector.NodeSelectorTerms) == 0 {
			continue
		}
		if n := len(selector.NodeSelectorTerms); n > 1 {
			// The terms of a selector are alternatives. The API allows one term, because alternatives can't be combined into one term.
			return nil, answer.DoesNotFit(fmt.Sprintf("unsupported ResourceSlice.NodeSelector with %d terms", n))
		}
		term.MatchFields = addRequirements(term.MatchFields, selector.NodeSelectorTerms[0].MatchFields)
		term.MatchExpressions = addRequirements(term.MatchExpressions, selector.NodeSelectorTerms[0].MatchExpressions)
	}
	if len(term.MatchFields) == 0 && len(term.MatchExpressions) == 0 {
		return nil, nil
	}
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}, nil
}

func onlyOn(node string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{
			Key:      "metadata.name",
			Operator: v1.NodeSelectorOpIn,
			Values:   []string{node},
		}},
	}}}
}

// addRequirements appends the requirements of from to the list to, except requirements that the list already has.
func addRequirements(to, from []v1.NodeSelectorRequirement) []v1.NodeSelectorRequirement {
	for _, requirement := range from {
		if !containsRequirement(to, requirement) {
			to = append(to, requirement)
		}
	}
	return to
}

// containsRequirement reports whether in contains the requirement. The order of values is ignored.
func containsRequirement(in []v1.NodeSelectorRequirement, requirement v1.NodeSelectorRequirement) bool {
	values := sets.New(requirement.Values...)
	for _, known := range in {
		if known.Key == requirement.Key && known.Operator == requirement.Operator && sets.New(known.Values...).Equal(values) {
			return true
		}
	}
	return false
}

// IsAbout reports whether the preference p of a claim covers a device of the solution. A preference of a class may cover only
// an alternative that was not chosen. Then no search for the preference has to be set up.
func (s *Solution) IsAbout(claim int, p *plan.Preference) bool {
	return slices.ContainsFunc(s.Choices, func(c Choice) bool { return c.Claim == claim && constraint.Covers(p.API, &c.Request.Request) })
}

// Positions describes a solution independently of the node: by the indices of alternatives and the positions of devices.
func (s *Search) Positions(of *Solution) (decisions []int, choices []answer.Choice) {
	decisions, choices = make([]int, 0, len(of.Decisions)), make([]answer.Choice, 0, len(of.Choices))
	next := 0
	for _, requests := range s.Requests {
		for range requests {
			decisions = append(decisions, of.Decisions[next].alternative)
			next++
		}
	}
	for _, c := range of.Choices {
		choices = append(choices, answer.Choice{Claim: c.Claim, Request: c.Request.Order, Position: c.Position})
	}
	return decisions, choices
}

// Replay sets the solution of the search from the values that Positions returned.
func (s *Search) Replay(decisions []int, choices []answer.Choice) {
	for _, requests := range s.Requests {
		for _, all := range requests {
			s.Solution.Decisions = append(s.Solution.Decisions, all[decisions[len(s.Solution.Decisions)]])
		}
	}
	first := make([]int, len(s.Claims))
	for i := 1; i < len(s.Claims); i++ {
		first[i] = first[i-1] + len(s.Requests[i-1])
	}
	for _, c := range choices {
		s.Solution.Choices = append(s.Solution.Choices, Choice{Claim: c.Claim, Request: s.Solution.Decisions[first[c.Claim]+c.Request], Candidate: s.Inventory.Candidates[c.Position]})
	}
}

// HasChosen sets the solution of the search to the devices allocated to the claim.
func (s *Search) HasChosen(claim *resourceapi.ResourceClaim) error {
	var results []resourceapi.DeviceRequestAllocationResult
	if claim.Status.Allocation != nil {
		results = claim.Status.Allocation.Devices.Results
	}
	for _, all := range s.Requests[0] {
		met := all[0]
		for _, r := range all {
			if slices.ContainsFunc(results, func(d resourceapi.DeviceRequestAllocationResult) bool { return d.Request == r.Name }) {
				met = r
				break
			}
		}
		s.Solution.Decisions = append(s.Solution.Decisions, met)
		for _, d := range results {
			if d.Request != met.Name {
				continue
			}
			id := structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
			at := slices.IndexFunc(s.Inventory.Candidates, func(c *inventory.Candidate) bool { return c.ID == id })
			if at < 0 {
				return met.Errorf("the allocated device %s is not a device of node %s", id, s.Node.Name)
			}
			s.Solution.Choices = append(s.Solution.Choices, Choice{Request: met, Candidate: s.Inventory.Candidates[at]})
		}
	}
	return nil
}
