// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const latestGeneration = 2

// pools draws one to three pools. Their slices are in random order.
func (g *generator) pools() {
	count := pick(g, 2, 1, 3, 2)
	for i := range count {
		// The third pool has the same name as the first pool, but another driver.
		driver, name := drivers[0], poolNames[i%2]
		if i == 2 || i == 1 && g.maybe() {
			driver = drivers[1]
		}
		g.pool(driver, name)
	}
	for i := len(g.Slices) - 1; i > 0; i-- {
		j := g.between(0, i)
		g.Slices[i], g.Slices[j] = g.Slices[j], g.Slices[i]
	}
}

// pool draws the slices of one pool: the latest generation, and sometimes an older or an incomplete newer generation.
func (g *generator) pool(driver, name string) {
	p := &poolDraw{
		generator: g, driver: driver, name: name,
		place:              g.poolPlacement(),
		skipNodeOperations: g.often(usabilityTheme),
		bindingConditions:  g.mostly(usabilityTheme),
	}
	p.sets = p.counterSets()
	slices := make([]*resourceapi.ResourceSlice, 0, 4)
	for range pick(g, 1, 2, 1, 3) {
		slices = append(slices, p.slice(latestGeneration))
	}
	slices = append(slices, p.counterSlices()...)
	count := int64(len(slices))
	if g.oneIn2To(5) {
		count += pick[int64](g, 1, -1)
	}
	for _, slice := range slices {
		slice.Spec.Pool.ResourceSliceCount = count
	}
	g.Slices = append(g.Slices, slices...)
	p.otherGenerations()
}

// A poolDraw holds the state while a pool is drawn.
type poolDraw struct {
	*generator
	driver, name string
	place        func() placement
	// names is the number of device names assigned so far.
	names              int
	skipNodeOperations bool
	bindingConditions  bool
	// sets holds the shared counter sets of the pool.
	sets []resourceapi.CounterSet
}

// poolPlacement returns a function that draws the placement of each slice of a pool. The node can use all slices of most pools.
// Some pools are spread over several nodes, and some have no slice for the node.
func (g *generator) poolPlacement() func() placement {
	if g.Scarce || len(g.Slices) == 0 && !g.sometimes() && !g.isAbout(counterTheme, groupTheme) {
		// Give the node devices, because a case without devices is useless.
		here := g.placeHere()
		return func() placement { return here }
	}
	perDevice := func() placement { return placement{perDevice: ptr.To(true)} }
	switch g.placementKind() {
	default:
		here := g.placeHere()
		return func() placement { return here }
	case 10, 11:
		return func() placement {
			if g.sometimes() {
				return g.placeElsewhere()
			}
			return g.placeHere()
		}
	case 12, 13:
		return perDevice
	case 14:
		return func() placement {
			if g.maybe() {
				return perDevice()
			}
			return g.placeHere()
		}
	case 15:
		return g.placeElsewhere
	}
}

// placementKind draws the kind of a pool's placement. Usually the node can use the whole pool. Cases about counters prefer
// pools whose counters are also consumed on other nodes.
func (g *generator) placementKind() int {
	if g.isAbout(counterTheme, groupTheme) && g.maybe() {
		return pick(g, 10, 12)
	}
	return g.fairly(4)
}

// otherGenerations adds a slice of an older generation, which must be ignored, or of a newer generation that is incomplete.
func (p *poolDraw) otherGenerations() {
	if p.rarely() {
		old := p.slice(latestGeneration - 1)
		old.Spec.Pool.ResourceSliceCount = 1
		p.Slices = append(p.Slices, old)
	}
	if p.oneIn2To(5) {
		p.place = p.placeElsewhere
		if p.maybe() {
			p.place = p.placeHere
		}
		newer := p.slice(latestGeneration + 1)
		newer.Spec.Pool.ResourceSliceCount = int64(pick(p.generator, 1, 2))
		p.Slices = append(p.Slices, newer)
	}
}

// slice draws a slice with devices.
func (p *poolDraw) slice(generation int64) *resourceapi.ResourceSlice {
	slice := p.emptySlice(generation)
	p.place().applyToSlice(slice)
	if p.skipNodeOperations {
		slice.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
	}
	for range min(pick(p.generator, 3, 4, 5, 2, 6, 3, 1, 0), p.MaxDevices-p.devices) {
		slice.Spec.Devices = append(slice.Spec.Devices, p.device(slice))
		p.devices++
	}
	if p.Faults && len(slice.Spec.Devices) > 0 && !p.crowded && !p.isAbout(scarceTheme) &&
		(p.oneIn2To(7) || p.isAbout(alternativesTheme) && p.oneIn2To(4)) {
		p.crowd(slice)
	}
	return slice
}

// emptySlice draws a slice without devices. Its name is random, because names determine the order of slices.
func (p *poolDraw) emptySlice(generation int64) *resourceapi.ResourceSlice {
	name := fmt.Sprintf("slice-%02d", p.between(0, 99))
	for i := 0; p.sliceNames.Has(name); i++ {
		name = fmt.Sprintf("slice-more-%02d", i)
	}
	p.sliceNames.Insert(name)
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: p.driver,
			Pool:   resourceapi.ResourcePool{Name: p.name, Generation: generation},
		},
	}
}

func (p *poolDraw) device(slice *resourceapi.ResourceSlice) resourceapi.Device {
	device := resourceapi.Device{
		Name:                     p.deviceName(),
		Attributes:               p.attributes(),
		Capacity:                 p.capacity(),
		Taints:                   p.taints(),
		ConsumesCounters:         p.consumption(),
		AllowMultipleAllocations: p.allowsMultipleAllocations(),
	}
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		p.devicePlacement().applyToDevice(&device)
	}
	if p.bindingConditions && !p.sometimes() {
		device.BindingConditions = []string{"example.com/attached"}
		device.BindingFailureConditions = []string{"example.com/attach-failed"}
	}
	if p.rarely() {
		device.BindsToNode = ptr.To(p.maybe())
	}
	return device
}

// deviceName draws a device name that is unique in the pool, or rarely a duplicate, which makes the pool invalid.
func (p *poolDraw) deviceName() string {
	if p.names == 0 || !p.oneIn2To(8) {
		p.names++
	}
	return fmt.Sprintf("device-%d", p.names)
}

func (p *poolDraw) devicePlacement() placement {
	if p.sometimes() {
		return p.placeElsewhere()
	}
	return p.placeHere()
}

// crowdSize is the maximum number of devices that a crowd adds.
const crowdSize = 34

// crowd adds copies of the slice's first device, about as many as a claim can have.
func (p *poolDraw) crowd(slice *resourceapi.ResourceSlice) {
	p.crowded = true
	for range p.between(crowdSize-12, crowdSize) {
		device := slice.Spec.Devices[0].DeepCopy()
		p.names++
		device.Name = fmt.Sprintf("device-%d", p.names)
		slice.Spec.Devices = append(slice.Spec.Devices, *device)
	}
}
