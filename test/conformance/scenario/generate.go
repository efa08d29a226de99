// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// Cases draws cases within a profile.
func Cases(profile Profile) *rapid.Generator[*Case] {
	return rapid.Custom(func(t *rapid.T) *Case {
		g := &generator{T: t, Profile: profile, Case: &Case{}, sliceNames: sets.New[string]()}
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

	sliceNames sets.Set[string]
	// devices is the number of devices drawn for latest generations.
	devices int
	// requests and wanted count what the claims so far ask for.
	requests, wanted int
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
	if g.maybe() {
		return
	}
	g.Devices(func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) bool {
		if g.oneIn2To(3) {
			g.Allocated = append(g.Allocated, Device{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name})
		}
		return true
	})
	if g.rarely() {
		g.Allocated = append(g.Allocated, Device{Driver: gpuDriver, Pool: poolNames[0], Device: "removed"})
	}
}
