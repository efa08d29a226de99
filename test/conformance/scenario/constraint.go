// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// attributeConstraints draws constraints that compare attributes. Together with
// requests for all devices they are errors, not conditions, so without faults
// they don't cover such requests.
func (g *generator) attributeConstraints(requests []resourceapi.DeviceRequest) []resourceapi.DeviceConstraint {
	coverable, all := g.references(requests), true
	if !g.Faults {
		coverable, all = namesWithCount(requests, coverable)
	}
	if len(coverable) == 0 {
		return nil
	}
	count := pick(g, 0, 0, 0, 1, 0, 1, 0, 2)
	if g.isAbout(listTheme, derivedTheme, scarceTheme) {
		count = pick(g, 1, 1, 0, 2)
	}
	var constraints []resourceapi.DeviceConstraint
	for range count {
		if g.fault() {
			constraints = append(constraints, resourceapi.DeviceConstraint{})
			continue
		}
		constraint := g.attributeConstraint()
		if !all || g.maybe() {
			constraint.Requests = some(g, coverable)
		}
		constraints = append(constraints, constraint)
	}
	return constraints
}

// namesWithCount leaves out names of requests for all devices, and says whether
// there are no such requests.
func namesWithCount(requests []resourceapi.DeviceRequest, names []string) (kept []string, all bool) {
	withCount := func(name string) bool {
		result := true
		byName(requests, name, func(r *resourceapi.ExactDeviceRequest) {
			result = result && r.AllocationMode != resourceapi.DeviceAllocationModeAll
		})
		return result
	}
	for _, name := range names {
		if withCount(name) {
			kept = append(kept, name)
		}
	}
	all = true
	for _, request := range requests {
		all = all && withCount(request.Name)
	}
	return kept, all
}

func (g *generator) attributeConstraint() resourceapi.DeviceConstraint {
	if g.maybe() {
		return resourceapi.DeviceConstraint{DistinctAttribute: g.attributeOf(attributeIndex, attributeCol, attributeGroup, attributeHealthy, attributeModel)}
	}
	return resourceapi.DeviceConstraint{MatchAttribute: g.attributeOf(attributeHealthy, attributeRow, attributeModel, attributeGroup, attributeVersion)}
}

// attributeOf names an attribute of a driver, or the one that all drivers share,
// or rarely one that nobody has.
func (g *generator) attributeOf(ids ...string) *resourceapi.FullyQualifiedName {
	name := g.driver() + "/" + pick(g, ids...)
	switch {
	case g.isAbout(derivedTheme) && !g.sometimes():
		name = derivedKind
	case g.isAbout(listTheme) && !g.sometimes():
		name = sharedDomain + "/" + attributeLinks
	case g.sometimes():
		name = sharedDomain + "/" + attributeRack
	case g.oneIn2To(6):
		name = gpuDriver + "/missing"
	case g.fault():
		// Not qualified: finds only what has the same unqualified name.
		name = pick(g, ids...)
	}
	return ptr.To(resourceapi.FullyQualifiedName(name))
}

// isReference tells whether a constraint refers to a CEL device constraint.
func isReference(constraint resourceapi.DeviceConstraint) bool {
	return constraint.MatchAttribute != nil && strings.HasPrefix(string(*constraint.MatchAttribute), v1alpha1.AttributeDomain+"/")
}
