// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/policy"
)

type claimBuilder struct{ *resourceapi.ResourceClaim }

// claim returns the claim default/<name>.
func claim(name string) *claimBuilder {
	return &claimBuilder{&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}}
}

// want adds a request for count devices of the driver's class.
func (b *claimBuilder) want(request string, count int64, selectors ...string) *claimBuilder {
	b.Spec.Devices.Requests = append(b.Spec.Devices.Requests, resourceapi.DeviceRequest{
		Name: request,
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: driver,
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           count,
			Selectors:       celSelectors(selectors),
		},
	})
	return b
}

func (b *claimBuilder) wantAll(request string, selectors ...string) *claimBuilder {
	return b.want(request, 0, selectors...).edit(func(r *resourceapi.ExactDeviceRequest) {
		r.AllocationMode = resourceapi.DeviceAllocationModeAll
	})
}

// edit changes the last request.
func (b *claimBuilder) edit(edit func(*resourceapi.ExactDeviceRequest)) *claimBuilder {
	edit(b.Spec.Devices.Requests[len(b.Spec.Devices.Requests)-1].Exactly)
	return b
}

func (b *claimBuilder) class(name string) *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) { r.DeviceClassName = name })
}

func (b *claimBuilder) admin() *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(true) })
}

func (b *claimBuilder) match(attribute string, requests ...string) *claimBuilder {
	b.Spec.Devices.Constraints = append(b.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return b
}

func (b *claimBuilder) distinct(attribute string, requests ...string) *claimBuilder {
	b.Spec.Devices.Constraints = append(b.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return b
}

// cel adds a reference to a CEL constraint.
func (b *claimBuilder) cel(name string, requests ...string) *claimBuilder {
	return b.match(v1alpha1.AttributeDomain+"/"+name, requests...)
}

// define adds the definition of a CEL constraint.
func (b *claimBuilder) define(name, expression string, variables ...v1alpha1.Variable) *claimBuilder {
	return b.configure(definitionOf(name, expression, variables...))
}

func (b *claimBuilder) configure(configuration resourceapi.DeviceConfiguration, requests ...string) *claimBuilder {
	b.Spec.Devices.Config = append(b.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		Requests: requests, DeviceConfiguration: configuration,
	})
	return b
}

// firstAvailable adds a request with alternatives.
func (b *claimBuilder) firstAvailable(request string, alternatives ...resourceapi.DeviceSubRequest) *claimBuilder {
	b.Spec.Devices.Requests = append(b.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: request, FirstAvailable: alternatives})
	return b
}

// sub returns an alternative for count devices of the driver's class.
func sub(name string, count int64, selectors ...string) resourceapi.DeviceSubRequest {
	return subOf(driver, name, count, selectors...)
}

func subOf(class, name string, count int64, selectors ...string) resourceapi.DeviceSubRequest {
	return resourceapi.DeviceSubRequest{
		Name: name, DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		Selectors: celSelectors(selectors),
	}
}

func subAll(name string, selectors ...string) resourceapi.DeviceSubRequest {
	s := sub(name, 0, selectors...)
	s.AllocationMode = resourceapi.DeviceAllocationModeAll
	return s
}

// derive adds a derived attribute to the last request.
func (b *claimBuilder) derive(attribute, expression string) *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) {
		r.DerivedAttributes = append(r.DerivedAttributes, resourceapi.DeviceDerivedAttribute{
			Name: resourceapi.FullyQualifiedName(attribute), Expression: expression,
		})
	})
}

// capacity adds an amount of a capacity to the last request.
func (b *claimBuilder) capacity(name, amount string) *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) { r.Capacity = policy.Requesting(r.Capacity, name, amount) })
}

// share is an allocation of a shared device of the driver.
type share struct {
	device string
	// pool is pool-1 if empty.
	pool string
	// consumed maps capacities to amounts. It may be empty.
	consumed map[string]string
	// unnamed is true if only the consumed capacity is counted, not the share itself.
	unnamed bool
}

func (s share) addTo(state *structured.AllocatedState) {
	id := structured.MakeDeviceID(driver, cmp.Or(s.pool, "pool-1"), s.device)
	if !s.unnamed {
		if state.AllocatedSharedDeviceIDs == nil {
			state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
		}
		share := types.UID(fmt.Sprintf("share-%d", len(state.AllocatedSharedDeviceIDs)))
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
	}
	if s.consumed == nil {
		return
	}
	consumed := make(map[resourceapi.QualifiedName]resource.Quantity)
	for name, amount := range s.consumed {
		consumed[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
	}
	if state.AggregatedCapacity == nil {
		state.AggregatedCapacity = structured.NewConsumedCapacityCollection()
	}
	state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, consumed))
}

// shared makes a device available for several allocations.
func shared(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) }

// amounts maps counters to amounts.
type amounts map[string]string

func (a amounts) counters() map[string]resourceapi.Counter {
	result := make(map[string]resourceapi.Counter, len(a))
	for name, amount := range a {
		result[name] = resourceapi.Counter{Value: resource.MustParse(amount)}
	}
	return result
}

// providing returns slice 1 of 2 of pool-1, with counter sets.
func providing(name string, sets map[string]amounts) *sliceBuilder {
	return slice(name).pool("pool-1", 1, 2).edit(func(s *resourceapi.ResourceSliceSpec) {
		for _, set := range slices.Sorted(maps.Keys(sets)) {
			s.SharedCounters = append(s.SharedCounters, resourceapi.CounterSet{Name: set, Counters: sets[set].counters()})
		}
	})
}

// consuming makes a device consume counters of a counter set.
func consuming(set string, consumed amounts, groups ...string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourceapi.DeviceCounterConsumption{
			CounterSet: set, Counters: consumed.counters(), CompatibilityGroups: groups,
		})
	}
}

// onAny makes a device of a slice with node selection per device usable on all nodes.
func onAny(d *resourceapi.Device) { d.AllNodes = ptr.To(true) }

// partitioned returns the two slices of a pool with the counter set "gpu", which has an amount of memory.
func partitioned(memory string, devices ...resourceapi.Device) []*sliceBuilder {
	return []*sliceBuilder{
		providing("counters", map[string]amounts{"gpu": {"memory": memory}}),
		slice("devices", devices...).pool("pool-1", 1, 2),
	}
}

// part returns a device that consumes memory of the counter set "gpu".
func part(name, memory string, groups ...string) resourceapi.Device {
	return newDevice(name, nil, consuming("gpu", amounts{"memory": memory}, groups...))
}

const color = driver + "/color"
