// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// selectors draws the selectors of a class or a request.
func (g *generator) selectors() []resourceapi.DeviceSelector {
	var selectors []resourceapi.DeviceSelector
	count := pick(g, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2)
	if g.FailingSelectors {
		count = pick(g, 0, 1)
	}
	for range count {
		selectors = append(selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: g.selector()}})
	}
	return selectors
}

func (g *generator) selector() string {
	if g.FailingSelectors && g.maybe() {
		return g.failingSelector()
	}
	if g.fault() {
		return g.faultySelector()
	}
	return pick(g, g.soundSelectors()...)
}

// soundSelectors compile and are false for devices that don't have what they ask
// for.
func (g *generator) soundSelectors() []string {
	driver := g.driver()
	attribute := func(id string) string { return fmt.Sprintf("device.attributes['%s'].%s", driver, id) }
	guarded := func(id, comparison string) string {
		return fmt.Sprintf("has(%s) && %s %s", attribute(id), attribute(id), comparison)
	}
	return []string{
		"true",
		fmt.Sprintf("device.driver == '%s'", driver),
		guarded(attributeIndex, fmt.Sprintf("< %d", g.between(2, 5))),
		guarded(attributeIndex, "% 2 == 0"),
		guarded(attributeGroup, "!= 'group-1'"),
		guarded(attributeModel, "== 'model-1'"),
		guarded(attributeHealthy, "== true"),
		fmt.Sprintf("!has(%s) || %s != 'group-1'", attribute(attributeGroup), attribute(attributeGroup)),
		guarded(attributeRow, "<= 1"),
		guarded(attributeVersion, ".compareTo(semver('1.1.0')) > 0"),
		fmt.Sprintf("device.attributes['%s'].?%s.orValue('rack-1') == 'rack-1'", sharedDomain, attributeRack),
		fmt.Sprintf("device.driver == '%s' && device.capacity['%s'].memory.compareTo(quantity('20Gi')) >= 0", driver, driver),
	}
}

// failingSelector fails for some devices.
func (g *generator) failingSelector() string {
	driver := g.driver()
	return pick(g,
		fmt.Sprintf("device.attributes['%s'].%s >= 0", driver, attributeIndex),
		fmt.Sprintf("device.attributes['%s'].%s != 'rack-3'", sharedDomain, attributeRack),
		fmt.Sprintf("device.attributes[device.driver].%s != 'group-9'", attributeGroup),
		fmt.Sprintf("device.attributes[device.driver].%s < 9", attributeRow),
		fmt.Sprintf("6 / (device.attributes[device.driver].?%s.orValue(0) - 5) < 9", attributeIndex),
		fmt.Sprintf("device.attributes['%s'].%s == 'model-1'", driver, attributeModel),
	)
}

// faultySelector fails for some devices, or does not compile.
func (g *generator) faultySelector() string {
	if g.maybe() {
		return g.failingSelector()
	}
	return pick(g,
		"device.attributes['missing.example.com'].missing == 1",
		"!device.allowMultipleAllocations",
		"device.attributes[",
		"device.driver",
	)
}
