// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// Cases draws cases within a profile.
//
// Left out is what the API does not allow and makes upstream panic: a class
// selector without cel, a request that is of no kind, a range of a request policy
// with a step but without a minimum or with a step of zero, a negative count.
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

// generator is the state while one case is drawn.
type generator struct {
	*rapid.T
	Profile
	*Case

	theme      theme
	sliceNames sets.Set[string]
	// devices is the number of devices drawn for latest generations.
	devices int
	// crowded: there are many more devices than claims may want.
	crowded bool
	// requests and wanted count what the claims so far ask for.
	requests, wanted int
	// sets is the number of ways to choose devices for the claims so far.
	sets float64
	// definitions is the number of CEL constraints defined so far.
	definitions int
}

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	// sharedDomain is the domain of attributes that devices of several drivers have.
	sharedDomain = "example.com"
)

// drivers have pools with the same names.
var (
	drivers   = []string{gpuDriver, nicDriver}
	poolNames = []string{"pool-a", "pool-b"}
)

// driver draws a driver, more often one that has devices.
func (g *generator) driver() string {
	if g.rarely() || len(g.Slices) == 0 {
		return nicDriver
	}
	return pick(g, g.Slices...).Spec.Driver
}

// allocated draws the devices in use.
func (g *generator) allocated() {
	if g.maybe() && !g.isAbout(counterTheme, groupTheme) {
		return
	}
	g.Devices(func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) bool {
		d := Device{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name}
		if g.isShared(device) {
			g.shares(d, device)
		} else if g.oneIn2To(3) || g.isAbout(counterTheme) && g.oneIn2To(3) {
			g.Allocated = append(g.Allocated, d)
		}
		return true
	})
	if g.rarely() {
		g.Allocated = append(g.Allocated, Device{Driver: gpuDriver, Pool: poolNames[0], Device: "removed"})
	}
}
