// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import "k8s.io/dynamic-resource-allocation/structured"

// features draws which features are on. Those that change what all requests mean
// and are not drawn yet stay off: lists, derived attributes, compatibility groups.
func (g *generator) features() {
	on := func() bool { return !g.sometimes() }
	g.Features = structured.Features{
		AdminAccess:            on(),
		ConsumableCapacity:     on(),
		DeviceBindingAndStatus: on(),
		DeviceTaints:           on(),
		OptionalNodeOperations: g.maybe(),
		PartitionableDevices:   on(),
		PrioritizedList:        on(),
	}
}
