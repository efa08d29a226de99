// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

const derivedKind = "derived.example.com/kind"

// derivedAttributes draws the derived attributes of a request, one of which may
// take the place of a published one. If the feature is off they are an error.
func (g *generator) derivedAttributes() []resourceapi.DeviceDerivedAttribute {
	if g.Simple {
		return nil
	}
	if !g.Features.DerivedAttributes {
		if !g.fault() && !(g.Faults && g.isAbout(derivedTheme) && g.oneIn2To(5)) {
			return nil
		}
	} else if !g.mostly(derivedTheme) {
		return nil
	}
	result := []resourceapi.DeviceDerivedAttribute{{Name: derivedKind, Expression: g.derivation()}}
	if g.sometimes() {
		result = append(result, resourceapi.DeviceDerivedAttribute{
			Name:       resourceapi.FullyQualifiedName(gpuDriver + "/" + pick(g, attributeGroup, attributeModel)),
			Expression: g.derivation(),
		})
	}
	return result
}

// derivation draws an expression of any type that an attribute may have.
func (g *generator) derivation() string {
	if g.Faults && g.oneIn2To(4) {
		return g.faultyDerivation()
	}
	index := fmt.Sprintf("device.attributes[device.driver].?%s.orValue(0)", attributeIndex)
	return pick(g,
		index+" / 2",
		index+" % 2",
		"device.driver",
		"string("+index+" % 3)",
		index+" < 2",
		fmt.Sprintf("device.attributes['%s'].?%s.orValue('rack-1')", sharedDomain, attributeRack),
		"semver("+index+" < 2 ? '1.0.0' : '1.2.0')",
		"["+index+" / 2, 7]",
		"["+index+" % 2, "+index+" % 3]",
		"[device.driver]",
		"'one'",
	)
}

// faultyDerivation fails for some devices, or does not compile.
func (g *generator) faultyDerivation() string {
	return pick(g,
		"6 / device.attributes[device.driver]."+attributeIndex,
		fmt.Sprintf("device.attributes['%s'].%s", sharedDomain, attributeRack),
		"device.attributes[device.driver]."+attributeModel,
		"device.attributes",
		"device.driver +",
	)
}
