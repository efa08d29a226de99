// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// request draws a request of one kind or the other.
func (g *generator) request(name string) resourceapi.DeviceRequest {
	if g.hasAlternatives() {
		return resourceapi.DeviceRequest{Name: name, FirstAvailable: g.alternatives()}
	}
	exactly := g.exactly()
	g.amount(exactly)
	exactly.AdminAccess = g.adminAccess()
	g.addFault(exactly)
	return resourceapi.DeviceRequest{Name: name, Exactly: exactly}
}

// exactly draws what requests and alternatives have in common, but for the amount.
func (g *generator) exactly() *resourceapi.ExactDeviceRequest {
	return &resourceapi.ExactDeviceRequest{
		DeviceClassName:   g.className(),
		Selectors:         g.selectors(),
		AllocationMode:    resourceapi.DeviceAllocationModeExactCount,
		Tolerations:       g.tolerations(),
		Capacity:          g.capacityRequest(),
		DerivedAttributes: g.derivedAttributes(),
	}
}

// amount draws how many devices are wanted.
func (g *generator) amount(exactly *resourceapi.ExactDeviceRequest) {
	switch {
	case g.rarely():
		exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	case g.fault():
		exactly.Count = g.tooMany()
	default:
		exactly.Count = g.count()
	}
}

// count draws a number of devices.
func (g *generator) count() int64 {
	count := pick(g, 1, 1, 2, 1, 1, 2, 1, 3, 1, 2, 1, 4)
	switch {
	case g.Scarce && g.sometimes():
		count = max(1, g.devices-1+g.between(0, 2))
	case g.isAbout(scarceTheme):
		count = pick(g, 1, 2, 1, 3, 4, 5, 6)
	case g.isAbout(listTheme):
		count = pick(g, 2, 1, 2, 3)
	}
	count = min(count, g.MaxWanted-g.wanted)
	if g.oneIn2To(6) {
		count = 0
	}
	g.wanted += count
	return int64(count)
}

// tooMany draws a number of devices that exceeds the limit of a claim, or would
// together with few more.
func (g *generator) tooMany() int64 {
	if g.crowded {
		// A number that could be met had to be looked for.
		return pick[int64](g, 33, 1<<62)
	}
	return pick[int64](g, 33, 32, 31, 1<<62)
}

// adminAccess is not nil only if that is an error or the feature is on.
func (g *generator) adminAccess() *bool {
	switch {
	case !g.Features.AdminAccess && !(g.Faults && g.oneIn2To(6)):
		return nil
	case g.oneIn2To(3):
		return ptr.To(true)
	case g.rarely():
		return ptr.To(false)
	default:
		return nil
	}
}

// addFault asks for what is from the future.
func (g *generator) addFault(exactly *resourceapi.ExactDeviceRequest) {
	switch {
	case g.fault():
		exactly.AllocationMode = "Most"
	case g.fault():
		exactly.Selectors = append(exactly.Selectors, resourceapi.DeviceSelector{})
	}
}

// setsFor returns in how many ways a request can be met by the devices that there
// are, in the worst case.
func (g *generator) setsFor(request *resourceapi.DeviceRequest) float64 {
	devices := g.devices
	if g.crowded {
		devices += crowdSize
	}
	if request.Exactly != nil {
		return binomial(devices, request.Exactly.AllocationMode, request.Exactly.Count)
	}
	total := 0.0
	for _, alternative := range request.FirstAvailable {
		total += binomial(devices, alternative.AllocationMode, alternative.Count)
	}
	return total
}

// binomial also counts sets that are begun: wanting more than half of the devices is
// not less work than wanting half of them.
func binomial(devices int, mode resourceapi.DeviceAllocationMode, count int64) float64 {
	if mode != resourceapi.DeviceAllocationModeExactCount || count > resourceapi.AllocationResultsMaxSize {
		return 1
	}
	result := 1.0
	for i := range min(int(count), devices/2) {
		result *= float64(devices-i) / float64(i+1)
	}
	return result
}
