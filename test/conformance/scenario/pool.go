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

// pools draws one to three pools. Their slices are listed in no particular order.
func (g *generator) pools() {
	count := pick(g, 2, 1, 3, 2)
	for i := range count {
		// The third pool has the name of the first but another driver.
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

// pool draws the slices of one pool: those of the latest generation and
// sometimes others, left over or not finished.
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

// poolDraw is the state while one pool is drawn.
type poolDraw struct {
	*generator
	driver, name string
	place        func() placement
	// names is the number of device names given out.
	names              int
	skipNodeOperations bool
	bindingConditions  bool
	// sets are the shared counters of the pool.
	sets []resourceapi.CounterSet
}

// poolPlacement draws where the slices of a pool are: most pools are for the node
// as a whole, some are spread over nodes, some have nothing for the node.
func (g *generator) poolPlacement() func() placement {
	if g.Scarce || len(g.Slices) == 0 && !g.sometimes() && !g.isAbout(counterTheme, groupTheme) {
		// Without any device nothing is worth trying.
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

// placementKind is most often one for the node as a whole. Counters are more
// interesting if devices elsewhere consume them.
func (g *generator) placementKind() int {
	if g.isAbout(counterTheme, groupTheme) && g.maybe() {
		return pick(g, 10, 12)
	}
	return g.fairly(4)
}

// otherGenerations adds slices of an older generation, which nobody should see,
// or of a newer one, of which the first slices have been published only.
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

// emptySlice draws a name of which nothing follows but the place in the order of
// names.
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
