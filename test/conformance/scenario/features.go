// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import "k8s.io/dynamic-resource-allocation/structured"

// features draws which features are on: most, but those that a case is about and
// that allocators can ignore only half of the time.
func (g *generator) features() {
	on := func(about ...theme) bool {
		if g.Faults && g.isAbout(about...) {
			return g.maybe()
		}
		return !g.sometimes()
	}
	g.Features = structured.Features{
		AdminAccess:             on(),
		ConsumableCapacity:      g.isAbout(fractionTheme) || on(),
		DeviceBindingAndStatus:  on(usabilityTheme),
		DeviceTaints:            on(usabilityTheme),
		FractionalCapacityRange: on(fractionTheme),
		PartitionableDevices:    g.isAbout(groupTheme) || on(),
		PrioritizedList:         on(),
	}
	if g.Alpha {
		g.Features.CompatibilityGroups = on()
		g.Features.DerivedAttributes = on()
		g.Features.ListTypeAttributes = on()
		g.Features.OptionalNodeOperations = on(usabilityTheme)
	}
}
