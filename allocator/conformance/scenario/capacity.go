// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// These are capacities of devices, in the domain of the driver.
const (
	memory    resourceapi.QualifiedName = "memory"
	cores     resourceapi.QualifiedName = "cores"     // may be fractions
	bandwidth resourceapi.QualifiedName = "bandwidth" // requested, but no device has it
)

// capacity draws the capacities of a device. Every device has memory, because selectors read it.
func (p *poolDraw) capacity() map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	result := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		memory: {Value: resource.MustParse(pick(p.generator, "10Gi", "20Gi", "40Gi"))},
	}
	if p.Faults && p.isAbout(capacityTheme) && p.rarely() {
		return nil
	}
	if p.isAbout(fractionTheme) || p.often(capacityTheme) {
		result[cores] = resourceapi.DeviceCapacity{Value: resource.MustParse(pick(p.generator, "4", "2500m", "1500m", "8"))}
	}
	if p.Simple {
		return result
	}
	p.addPolicy(result, memory, p.memoryPolicy)
	p.addPolicy(result, cores, p.coresPolicy)
	return result
}

func (p *poolDraw) addPolicy(to map[resourceapi.QualifiedName]resourceapi.DeviceCapacity, name resourceapi.QualifiedName, policy func() *resourceapi.CapacityRequestPolicy) {
	if capacity, found := to[name]; found && p.mostly(capacityTheme, fractionTheme) {
		capacity.RequestPolicy = policy()
		to[name] = capacity
	}
}

// memoryPolicy draws a policy in whole units. Its default satisfies the policy.
func (p *poolDraw) memoryPolicy() *resourceapi.CapacityRequestPolicy {
	policy := &resourceapi.CapacityRequestPolicy{Default: quantity("2Gi")}
	switch p.fairly(3) {
	case 0:
	case 1:
		policy.ValidValues = []resource.Quantity{resource.MustParse("1Gi"), resource.MustParse("2Gi"), resource.MustParse("8Gi")}
	case 2:
		policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi")}
	case 3:
		policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi"), Max: quantity("4Gi")}
	default:
		policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: quantity("2Gi"), Step: quantity("2Gi")}
		if p.maybe() {
			policy.ValidRange.Max = quantity("6Gi")
		}
	}
	switch {
	case p.fault():
		policy.Default = quantity("-1Gi")
	case p.fault():
		policy.Default = nil
	case policy.ValidRange != nil && policy.ValidRange.Step == nil && p.fault():
		policy.ValidRange.Min = nil
	}
	return policy
}

// coresPolicy draws a policy with fractions. Its meaning depends on the feature for fractional ranges.
func (p *poolDraw) coresPolicy() *resourceapi.CapacityRequestPolicy {
	policy := &resourceapi.CapacityRequestPolicy{Default: quantity(pick(p.generator, "1", "1500m"))}
	valid := &resourceapi.CapacityRequestPolicyRange{Min: quantity("500m"), Step: quantity("250m")}
	policy.ValidRange = valid
	switch p.fairly(3) {
	case 0:
		policy.ValidRange = nil
		policy.ValidValues = []resource.Quantity{resource.MustParse("500m"), *policy.Default, resource.MustParse("2")}
	case 1:
		valid.Step = nil
	case 2:
		valid.Min, valid.Step = quantity("1"), quantity("500m")
	case 3:
		// These values need a finer unit than milli.
		valid.Min = quantity("500500u")
	}
	if p.maybe() {
		valid.Max = quantity(pick(p.generator, "2", "2250m"))
	}
	return policy
}

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// allowsMultipleAllocations draws the field allowMultipleAllocations of a device.
func (p *poolDraw) allowsMultipleAllocations() *bool {
	switch {
	case p.mostly(capacityTheme, fractionTheme), p.isAbout(counterTheme) && p.maybe():
		return ptr.To(true)
	case p.rarely():
		return ptr.To(false)
	default:
		return nil
	}
}

// capacityRequest draws the requested capacity of a request. If the feature is off, a requested capacity is an error.
func (g *generator) capacityRequest() *resourceapi.CapacityRequirements {
	if !g.Features.ConsumableCapacity {
		if !g.fault() && !(g.Faults && g.isAbout(capacityTheme, fractionTheme) && g.rarely()) {
			return nil
		}
	} else if !g.mostly(capacityTheme, fractionTheme) {
		return nil
	}
	result := &resourceapi.CapacityRequirements{Requests: make(map[resourceapi.QualifiedName]resource.Quantity)}
	if g.maybe() && !g.isAbout(fractionTheme) {
		result.Requests[memory] = resource.MustParse(pick(g, "2Gi", "1Gi", "3Gi", "5Gi", "10Gi", "1500Mi", "50Gi"))
	}
	if g.isAbout(fractionTheme) || g.rarely() {
		result.Requests[cores] = resource.MustParse(pick(g, "1", "600m", "1100m", "1500m", "1750m", "2", "2100m", "3"))
	}
	if g.rarely() && g.maybe() {
		result.Requests[bandwidth] = resource.MustParse("1")
	}
	switch {
	case g.Faults && g.isAbout(fractionTheme) && g.sometimes():
		result.Requests[cores] = resource.MustParse("1100500u") // not in milli units
	case g.Faults && g.oneIn2To(5):
		g.absurdCapacity(result.Requests)
	}
	return result
}

// absurdCapacity adds a requested amount that overflows or is not positive.
func (g *generator) absurdCapacity(requests map[resourceapi.QualifiedName]resource.Quantity) {
	switch g.fairly(3) {
	case 0:
		requests[memory] = resource.MustParse("8Ei") // more than an int64
	case 1:
		requests[memory] = resource.MustParse("9223372036854775807") // rounding up overflows
	case 2, 3:
		requests[cores] = resource.MustParse("10P") // overflows an int64 in milli units
	case 4:
		requests[memory] = resource.MustParse("-1Gi")
	default:
		requests[memory] = resource.MustParse("0")
	}
}

// isShared draws whether shares of a device are in use. Shares may be in use although the device does not allow them, because
// its driver may have changed allowMultipleAllocations after the allocation.
func (g *generator) isShared(device *resourceapi.Device) bool {
	return ptr.Deref(device.AllowMultipleAllocations, false) != g.oneIn2To(6)
}

// shares adds up to two shares in use of a device, with or without capacity.
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
