// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/dynamic-resource-allocation/structured"
)

// The feature gates of kube-scheduler that the allocator knows, with their defaults in the
// pinned version. Importing them would bring in all of kube-scheduler; a test compares.
const (
	adminAccess             featuregate.Feature = "DRAAdminAccess"
	compatibilityGroups     featuregate.Feature = "DRADeviceCompatibilityGroups"
	consumableCapacity      featuregate.Feature = "DRAConsumableCapacity"
	derivedAttributes       featuregate.Feature = "DRADerivedAttributes"
	bindingConditions       featuregate.Feature = "DRADeviceBindingConditions"
	deviceStatus            featuregate.Feature = "DRAResourceClaimDeviceStatus"
	deviceTaints            featuregate.Feature = "DRADeviceTaints"
	fractionalCapacityRange featuregate.Feature = "DRAFractionalCapacityRange"
	listTypeAttributes      featuregate.Feature = "DRAListTypeAttributes"
	optionalNodeOperations  featuregate.Feature = "DRAOptionalNodeOperations"
	partitionableDevices    featuregate.Feature = "DRAPartitionableDevices"
	prioritizedList         featuregate.Feature = "DRAPrioritizedList"
)

var gateDefaults = map[featuregate.Feature]featuregate.FeatureSpec{
	adminAccess:         {Default: true, PreRelease: featuregate.Beta},
	compatibilityGroups: {Default: false, PreRelease: featuregate.Alpha},
	consumableCapacity:  {Default: true, PreRelease: featuregate.Beta},
	derivedAttributes:   {Default: false, PreRelease: featuregate.Alpha},
	bindingConditions:   {Default: true, PreRelease: featuregate.Beta},
	deviceStatus:        {Default: true, PreRelease: featuregate.Beta},
	deviceTaints:        {Default: true, PreRelease: featuregate.Beta},
	// On only if components older than 1.37 need not be compatible.
	fractionalCapacityRange: {Default: false, PreRelease: featuregate.Beta},
	listTypeAttributes:      {Default: false, PreRelease: featuregate.Alpha},
	optionalNodeOperations:  {Default: false, PreRelease: featuregate.Alpha},
	partitionableDevices:    {Default: true, PreRelease: featuregate.Beta},
	prioritizedList:         {Default: true, PreRelease: featuregate.Beta},
}

// gates are the feature gates that the scheduler of the cluster has.
type gates struct {
	featuregate.MutableFeatureGate
}

func newGates() gates {
	g := gates{featuregate.NewFeatureGate()}
	if err := g.Add(gateDefaults); err != nil {
		panic(err) // the table above contradicts itself
	}
	return g
}

func (g gates) addFlag(flags *pflag.FlagSet) { g.AddFlag(flags) }

// features combines the gates as the scheduler's plugin does.
func (g gates) features() structured.Features {
	return structured.Features{
		AdminAccess:             g.Enabled(adminAccess),
		CompatibilityGroups:     g.Enabled(compatibilityGroups),
		ConsumableCapacity:      g.Enabled(consumableCapacity),
		DerivedAttributes:       g.Enabled(derivedAttributes),
		DeviceBindingAndStatus:  g.Enabled(bindingConditions) && g.Enabled(deviceStatus),
		DeviceTaints:            g.Enabled(deviceTaints),
		FractionalCapacityRange: g.Enabled(fractionalCapacityRange),
		ListTypeAttributes:      g.Enabled(listTypeAttributes),
		OptionalNodeOperations:  g.Enabled(optionalNodeOperations),
		PartitionableDevices:    g.Enabled(partitionableDevices),
		PrioritizedList:         g.Enabled(prioritizedList),
	}
}
