// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// hasAlternatives decides whether a request is a prioritized list. If the feature
// is off that is an error.
func (g *generator) hasAlternatives() bool {
	if !g.Features.PrioritizedList {
		return g.Faults && g.isAbout(alternativesTheme) && g.oneIn2To(3) || g.fault()
	}
	return g.mostly(alternativesTheme)
}

// alternatives draws one to three alternatives. They may want more devices than a
// claim may get, but only faults make the last one do so.
func (g *generator) alternatives() []resourceapi.DeviceSubRequest {
	count := pick(g, 2, 1, 3, 2)
	before, most := g.wanted, g.wanted
	var result []resourceapi.DeviceSubRequest
	for i := range count {
		g.wanted = before
		exactly := g.exactly()
		if i+1 < count && g.oneIn2To(2) {
			exactly.Count = g.tooMany()
		} else {
			g.amount(exactly)
		}
		if g.crowded && i+1 < count && g.maybe() {
			exactly.AllocationMode, exactly.Count = resourceapi.DeviceAllocationModeAll, 0
		}
		most = max(most, g.wanted)
		result = append(result, asAlternative(fmt.Sprintf("alternative-%d", i+1), exactly))
	}
	g.wanted = most
	return result
}

// references draws a list of names with which a constraint or configuration can
// refer to requests: of a prioritized list its own or those of some alternatives.
func (g *generator) references(requests []resourceapi.DeviceRequest) []string {
	var names []string
	for i := range requests {
		if alternatives := alternativeNames(&requests[i]); len(alternatives) > 0 && g.maybe() {
			names = append(names, some(g, alternatives)...)
		} else {
			names = append(names, requests[i].Name)
		}
	}
	return names
}

func alternativeNames(request *resourceapi.DeviceRequest) []string {
	var names []string
	for _, alternative := range request.FirstAvailable {
		names = append(names, request.Name+"/"+alternative.Name)
	}
	return names
}

// byName calls visit with what a name refers to: a request, all alternatives of
// one, or one alternative.
func byName(requests []resourceapi.DeviceRequest, name string, visit func(*resourceapi.ExactDeviceRequest)) {
	for i := range requests {
		request := &requests[i]
		if request.Exactly != nil && request.Name == name {
			visit(request.Exactly)
		}
		for j, full := range alternativeNames(request) {
			if request.Name == name || full == name {
				visit(asRequest(&request.FirstAvailable[j]))
			}
		}
	}
}
