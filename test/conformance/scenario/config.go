// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// configuration draws parameters for a driver. Allocators don't read them.
func (g *generator) configuration() resourceapi.DeviceConfiguration {
	return opaque(pick(g, drivers...), fmt.Sprintf(`{"value":%d}`, g.between(0, 9)))
}

func opaque(driver, parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     driver,
		Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

// claimConfiguration draws configuration for all requests of a claim, some of
// them, or for one that does not exist.
func (g *generator) claimConfiguration(requests []resourceapi.DeviceRequest) []resourceapi.DeviceClaimConfiguration {
	var config []resourceapi.DeviceClaimConfiguration
	for range pick(g, 0, 0, 1, 2) {
		c := resourceapi.DeviceClaimConfiguration{DeviceConfiguration: g.configuration()}
		switch {
		case g.rarely():
			c.Requests = []string{"request-missing"}
		case g.maybe():
			c.Requests = some(g, g.references(requests))
		}
		config = append(config, c)
	}
	return config
}
