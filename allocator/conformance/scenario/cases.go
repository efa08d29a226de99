// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// Cases returns a generator of cases within a profile.
//
// It draws no input that the API forbids and upstream panics on: a class selector without cel, a request that is neither
// exactly nor firstAvailable, a range of a request policy with a step but without a minimum, a step of zero, and a negative
// count.
func Cases(profile Profile) *rapid.Generator[*Case] {
	return rapid.Custom(func(t *rapid.T) *Case {
		g := &generator{T: t, Profile: profile, Case: &Case{}, sliceNames: sets.New[string](), sets: 1}
		g.theme = g.drawTheme()
		if g.Scarce {
			g.theme = scarceTheme
		}
		g.features()
		g.node()
		g.pools()
		g.classes()
		g.claims()
		g.allocated()
		return g.Case
	})
}

// allocated draws the devices and shares in use.
func (g *generator) allocated() {
	if g.maybe() && !g.isAbout(counterTheme, groupTheme) {
		return
	}
	g.Devices(func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		d := Device{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name}
		if g.isShared(device) {
			g.shares(d, device)
		} else if g.oneIn2To(3) || g.isAbout(counterTheme) && g.oneIn2To(3) {
			g.Allocated = append(g.Allocated, d)
		}
	})
	if g.rarely() {
		g.Allocated = append(g.Allocated, Device{Driver: gpuDriver, Pool: poolNames[0], Device: "removed"})
	}
}
