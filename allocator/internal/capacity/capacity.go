// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity computes with the capacities of devices.
//
// Consumable capacity (KEP-5075): a device that allows multiple allocations is
// shared, and each share consumes some of its capacities. What it consumes is the
// request, rounded up as the policy of the capacity says, or a default.
//
// The same is computed for devices that are not shared: a request for capacity
// then means that the device must have that much.
package capacity

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	// ErrNotRepresentable is an error of the whole allocation: the objects are wrong, and
	// another device would not help.
	ErrNotRepresentable = errors.New("capacity request cannot be represented in the device's range arithmetic")
	// ErrNegative is one of the whole allocation, too.
	ErrNegative = errors.New("capacity value is negative")
)

// Amounts is an amount for each capacity of a device.
type Amounts map[resourceapi.QualifiedName]resource.Quantity

// Consumed is what an allocation of the device for the request consumes. ok is
// false if the device can't serve the request, however much of it is free: it
// lacks a capacity or the policy of one forbids the amount.
func Consumed(device *resourceapi.Device, request *resourceapi.CapacityRequirements, fractional bool) (consumed Amounts, ok bool, err error) {
	consumed = make(Amounts, len(device.Capacity))
	ok, err = eachConsumed(device, request, fractional, func(name resourceapi.QualifiedName, amount resource.Quantity) {
		consumed[name] = amount
	})
	if !ok || err != nil {
		return nil, false, err
	}
	return consumed, true, nil
}

// HasRoom reports whether the device can serve the request beside what others consume:
// shares one by one, and the rest together, which may be nil.
func HasRoom(device *resourceapi.Device, request *resourceapi.CapacityRequirements, fractional bool, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) (bool, error) {
	fits := true
	ok, err := eachConsumed(device, request, fractional, func(name resourceapi.QualifiedName, amount resource.Quantity) {
		fits = fits && isLeft(device, name, amount, shares, rest)
	})
	return ok && fits, err
}

// isLeft reports whether so much of a capacity can be consumed beside what others consume. The amount
// must be a copy of its own.
func isLeft(device *resourceapi.Device, name resourceapi.QualifiedName, amount resource.Quantity, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) bool {
	for _, share := range shares {
		amount.Add(share[name])
	}
	if consumed := rest[name]; consumed != nil {
		amount.Add(*consumed)
	}
	return amount.Cmp(device.Capacity[name].Value) <= 0
}

// Overdrawn reports whether a share that consumes so much is more than others leave, and of which
// capacity. They are given as for [HasRoom]. Of what the device does not have, any amount can be consumed, as for
// HasRoom, which does not look at it; a negative amount can't.
func Overdrawn(device *resourceapi.Device, consumed Amounts, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) (resourceapi.QualifiedName, bool) {
	for _, name := range slices.Sorted(maps.Keys(consumed)) {
		amount := consumed[name]
		if amount.Sign() < 0 {
			return name, true
		}
		if _, found := device.Capacity[name]; found && !isLeft(device, name, amount.DeepCopy(), shares, rest) {
			return name, true
		}
	}
	return "", false
}

// eachConsumed visits the amounts of consumption, each a copy of its own. What it has visited
// means nothing if it is not ok in the end, which it never is with an error.
//
// Errors come before mere mismatches, so that it doesn't depend on the order of the map which
// of them is met.
func eachConsumed(device *resourceapi.Device, request *resourceapi.CapacityRequirements, fractional bool, visit func(resourceapi.QualifiedName, resource.Quantity)) (ok bool, err error) {
	var requests map[resourceapi.QualifiedName]resource.Quantity
	if request != nil {
		requests = request.Requests
	}
	for name := range requests {
		if _, found := device.Capacity[name]; !found {
			return false, nil
		}
	}
	ok = true
	for name, capacity := range device.Capacity {
		requested, found := requests[name]
		amount, err := consumedAmount(requested, found, capacity, fractional)
		if err == nil && amount.Sign() < 0 {
			err = ErrNegative
		}
		if err != nil {
			return false, fmt.Errorf("capacity %q: %w", name, err)
		}
		if ok = ok && permitted(amount, capacity.RequestPolicy, fractional); ok {
			visit(name, amount)
		}
	}
	return ok, nil
}

// consumedAmount rounds a request, if there is one, up to what the policy permits.
func consumedAmount(request resource.Quantity, requested bool, capacity resourceapi.DeviceCapacity, fractional bool) (resource.Quantity, error) {
	policy := capacity.RequestPolicy
	switch {
	case !requested && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy(), nil
	case !requested:
		return capacity.Value.DeepCopy(), nil
	case policy == nil:
		return request.DeepCopy(), nil
	case policy.ValidRange != nil && policy.ValidRange.Min != nil:
		return roundUpInRange(request, policy.ValidRange, fractional)
	default:
		return roundUpToValue(request, policy.ValidValues), nil
	}
}

// roundUpToValue returns the smallest of the ascending values that is enough. A
// request above all of them stays as it is and is not permitted later.
func roundUpToValue(request resource.Quantity, values []resource.Quantity) resource.Quantity {
	for _, value := range values {
		if value.Cmp(request) >= 0 {
			return value.DeepCopy()
		}
	}
	return request.DeepCopy()
}

// roundUpInRange returns the smallest min + n*step that is enough.
func roundUpInRange(request resource.Quantity, valid *resourceapi.CapacityRequestPolicyRange, fractional bool) (resource.Quantity, error) {
	if request.Cmp(*valid.Min) < 0 {
		return valid.Min.DeepCopy(), nil
	}
	if valid.Step == nil || valid.Step.Sign() <= 0 {
		return request.DeepCopy(), nil
	}
	unit := unitOf(valid, fractional)
	amount, ok := unit.exact(request)
	if !ok {
		return resource.Quantity{}, fmt.Errorf("%w: request %s", ErrNotRepresentable, request.String())
	}
	rounded, ok := ceilToStep(amount, unit.value(*valid.Min), unit.step(*valid.Step))
	if !ok {
		return resource.Quantity{}, fmt.Errorf("%w: request %s, rounded up to the next step", ErrNotRepresentable, request.String())
	}
	return unit.quantity(rounded, valid.Step.Format), nil
}

// ceilToStep returns the smallest base + n*step that is not less than amount,
// which is at least base. ok is false if that is too large for an int64. A step of
// 0 stands for one that is too large itself.
func ceilToStep(amount, base, step int64) (int64, bool) {
	if amount == base {
		return base, true
	}
	if step == 0 {
		return 0, false
	}
	steps := (amount - base) / step
	if (amount-base)%step != 0 {
		steps++
	}
	if base >= 0 && steps > (math.MaxInt64-base)/step {
		return 0, false
	}
	return base + steps*step, true
}

// permitted reports whether a policy allows to consume an amount. The default of
// the policy always is.
func permitted(amount resource.Quantity, policy *resourceapi.CapacityRequestPolicy, fractional bool) bool {
	switch {
	case policy == nil:
		return true
	case policy.Default != nil && amount.Cmp(*policy.Default) == 0:
		return true
	case policy.ValidRange != nil:
		return inRange(amount, policy.ValidRange, fractional)
	case len(policy.ValidValues) > 0:
		for _, value := range policy.ValidValues {
			if amount.Cmp(value) == 0 {
				return true
			}
		}
		return false
	default:
		return true
	}
}

func inRange(amount resource.Quantity, valid *resourceapi.CapacityRequestPolicyRange, fractional bool) bool {
	if valid.Max != nil && amount.Cmp(*valid.Max) > 0 {
		return false
	}
	if valid.Step == nil || valid.Step.Sign() <= 0 {
		return true
	}
	var base resource.Quantity
	if valid.Min != nil {
		base = *valid.Min
	}
	unit := unitOf(valid, fractional)
	if unit == milli {
		if _, ok := milli.exact(amount); !ok {
			return false
		}
	}
	step := unit.step(*valid.Step)
	if step == 0 {
		return amount.Cmp(base) == 0
	}
	return (unit.value(amount)-unit.value(base))%step == 0
}

// unit is what amounts are counted in to compute with steps.
type unit int

const (
	whole unit = iota
	milli
)

// unitOf is milli if the feature is on and all of the range can be counted in it.
func unitOf(valid *resourceapi.CapacityRequestPolicyRange, fractional bool) unit {
	if !fractional {
		return whole
	}
	for _, quantity := range []*resource.Quantity{valid.Min, valid.Max, valid.Step} {
		if quantity == nil {
			continue
		}
		if _, ok := milli.exact(*quantity); !ok {
			return whole
		}
	}
	return milli
}

// value counts a quantity in the unit, rounded up.
func (u unit) value(q resource.Quantity) int64 {
	if u == milli {
		return q.MilliValue()
	}
	return q.Value()
}

// exact is value unless that would not be the quantity: for whole units it may
// be rounded, but not wrap.
func (u unit) exact(q resource.Quantity) (int64, bool) {
	if u == whole {
		return q.Value(), q.CmpInt64(math.MaxInt64) <= 0
	}
	value := q.MilliValue()
	return value, q.Cmp(*resource.NewMilliQuantity(value, q.Format)) == 0
}

// step is value for a positive quantity, 0 if it is too large to be counted.
func (u unit) step(q resource.Quantity) int64 {
	value, ok := u.exact(q)
	if !ok {
		return 0
	}
	return value
}

// quantity is the inverse of value.
func (u unit) quantity(value int64, format resource.Format) resource.Quantity {
	switch {
	case u == whole:
		return *resource.NewQuantity(value, format)
	case value%1000 == 0:
		return *resource.NewQuantity(value/1000, format)
	default:
		return *resource.NewMilliQuantity(value, format)
	}
}
