// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// Reference is an entry of a claim's constraints that refers to a definition.
type Reference struct {
	// Index is the index of the entry in spec.devices.constraints.
	Index int
	// Requests names the requests whose devices the constraint covers, as "request" or "request/alternative". Empty means all
	// requests. It is the slice of the claim and must not be modified.
	Requests []string
	// Name is the name of the definition: matchAttribute without the domain.
	Name string
}

// References returns the references of a claim, in the order of its constraints. It neither decodes nor validates anything.
func References(spec *resourceapi.ResourceClaimSpec) []Reference {
	var references []Reference
	for i := range spec.Devices.Constraints {
		constraint := &spec.Devices.Constraints[i]
		if name, ok := nameInDomain(constraint.MatchAttribute); ok {
			references = append(references, Reference{Index: i, Requests: constraint.Requests, Name: name})
		}
	}
	return references
}

// HasReference reports whether a constraint of the claim uses the domain celset.dev. It is cheap. It also returns true for a
// distinctAttribute in that domain, so that [Resolve] rejects the claim with an error message. Otherwise the claim would wait
// forever without an explanation.
func HasReference(claim *resourceapi.ResourceClaim) bool {
	for i := range claim.Spec.Devices.Constraints {
		if isReference(&claim.Spec.Devices.Constraints[i]) {
			return true
		}
	}
	return false
}

func isReference(constraint *resourceapi.DeviceConstraint) bool {
	_, match := nameInDomain(constraint.MatchAttribute)
	_, distinct := nameInDomain(constraint.DistinctAttribute)
	return match || distinct
}

// nameInDomain returns the part of an attribute name that follows the domain celset.dev. ok is false if the name is nil or has
// another domain.
func nameInDomain(name *resourceapi.FullyQualifiedName) (id string, ok bool) {
	if name == nil {
		return "", false
	}
	return strings.CutPrefix(string(*name), AttributeDomain+"/")
}

// attribute returns the matchAttribute that refers to the definition with the name.
func attribute(name string) string {
	return AttributeDomain + "/" + name
}

// LooksUp returns the names that the carrier looks up in the class: the carrier refers to them, but does not define them
// itself. Each name occurs once.
func (c Carrier) LooksUp(class string) []string {
	own, _ := c.Definitions()
	var names []string
	for _, reference := range References(c.Spec) {
		if find(own, reference.Name) == nil && !slices.Contains(names, reference.Name) &&
			slices.Contains(coveredClasses(&c.Spec.Devices, reference.Requests), class) {
			names = append(names, reference.Name)
		}
	}
	return names
}

// coveredClasses returns the device classes of the requests that a constraint covers, each once, in the order of the requests.
// It includes the class of each covered alternative of a request, because any alternative may be allocated.
func coveredClasses(devices *resourceapi.DeviceClaim, requests []string) []string {
	covered := map[string]bool{}
	for _, name := range requests {
		covered[name] = true
	}
	var classes []string
	seen := map[string]bool{"": true}
	add := func(class string, names ...string) {
		isCovered := len(requests) == 0
		for _, name := range names {
			isCovered = isCovered || covered[name]
		}
		if isCovered && !seen[class] {
			seen[class] = true
			classes = append(classes, class)
		}
	}
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if request.Exactly != nil {
			add(request.Exactly.DeviceClassName, request.Name)
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			add(alternative.DeviceClassName, request.Name, request.Name+"/"+alternative.Name)
		}
	}
	return classes
}
