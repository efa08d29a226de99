// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// isShared tells whether a device is to have shares. Whether a device may is up to
// its driver, which can change its mind.
func (g *generator) isShared(device *resourceapi.Device) bool {
	return ptr.Deref(device.AllowMultipleAllocations, false) != g.oneIn2To(6)
}

// shares draws none to two shares of a device, with capacity or without.
func (g *generator) shares(d Device, device *resourceapi.Device) {
	for i := range pick(g, 0, 1, 2, 0) {
		share := Share{Device: d, ShareID: fmt.Sprintf("share-%s-%d", d.Device, i+1)}
		if !g.sometimes() {
			share.Consumed = make(map[resourceapi.QualifiedName]resource.Quantity)
			if _, found := device.Capacity[memory]; found || g.rarely() {
				share.Consumed[memory] = resource.MustParse(pick(g, "1Gi", "2Gi", "10Gi", "0"))
			}
			if _, found := device.Capacity[cores]; found {
				share.Consumed[cores] = resource.MustParse(pick(g, "1", "500m"))
			}
			if len(share.Consumed) == 0 {
				share.Consumed = nil
			}
		}
		g.Shares = append(g.Shares, share)
	}
}
