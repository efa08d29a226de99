// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity calculates with the capacities of devices.
//
// Consumable capacity (KEP-5075): a device that allows multiple allocations is shared, and each share consumes some of its
// capacities. A share consumes the requested amount, rounded up by the policy of the capacity, or a default.
//
// For devices that are not shared the calculation is the same: a request for capacity means that the device must have that much.
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
	// ErrNotRepresentable is an error of the whole allocation, because another device would not help.
	ErrNotRepresentable = errors.New("capacity request cannot be represented in the device's range arithmetic")
	// ErrNegative is an error of the whole allocation, too.
	ErrNegative = errors.New("capacity value is negative")
)

// Amounts maps capacities of a device to amounts.
type Amounts map[resourceapi.QualifiedName]resource.Quantity

// Consumed returns the amounts that an allocation of the device for the request consumes. ok is false if even an unused device
// can't serve the request, because it lacks a capacity or a policy forbids the amount.
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

// CanServe reports whether the device can serve the request in addition to other consumption. shares holds other consumption one
// by one. rest holds all further consumption in total, and may be nil.
func CanServe(device *resourceapi.Device, request *resourceapi.CapacityRequirements, fractional bool, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) (bool, error) {
	fits := true
	ok, err := eachConsumed(device, request, fractional, func(name resourceapi.QualifiedName, amount resource.Quantity) {
		fits = fits && isAvailable(device, name, amount, shares, rest)
	})
	return ok && fits, err
}

// isAvailable reports whether the amount of a capacity is available in addition to other consumption. amount must be a deep copy,
// because isAvailable adds to it.
func isAvailable(device *resourceapi.Device, name resourceapi.QualifiedName, amount resource.Quantity, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) bool {
	for _, share := range shares {
		amount.Add(share[name])
	}
	if consumed := rest[name]; consumed != nil {
		amount.Add(*consumed)
	}
	return amount.Cmp(device.Capacity[name].Value) <= 0
}

// Exceeded returns the first capacity where a share consumes more than is available. shares hold other consumption one by one,
// and rest holds the other consumption in total. Capacities that the device lacks are ignored, unless the amount is negative.
func Exceeded(device *resourceapi.Device, consumed Amounts, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) (resourceapi.QualifiedName, bool) {
	for _, name := range slices.Sorted(maps.Keys(consumed)) {
		amount := consumed[name]
		if amount.Sign() < 0 {
			return name, true
		}
		if _, found := device.Capacity[name]; found && !isAvailable(device, name, amount.DeepCopy(), shares, rest) {
			return name, true
		}
	}
	return "", false
}

// eachConsumed calls visit with copies of the consumed amounts. If ok is false or there is an error, the visited amounts are
// meaningless.
//
// An error takes precedence over a forbidden amount, so that the result does not depend on the order of the map.
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

// consumedAmount returns the request rounded up to a permitted amount, or the default without a request.
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

// roundUpToValue returns the smallest sufficient value; values are ascending. A request above all values is returned unchanged,
// and is not permitted later.
func roundUpToValue(request resource.Quantity, values []resource.Quantity) resource.Quantity {
	for _, value := range values {
		if value.Cmp(request) >= 0 {
			return value.DeepCopy()
		}
	}
	return request.DeepCopy()
}

// roundUpInRange returns the smallest sufficient min + n*step.
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

// ceilToStep returns the smallest base + n*step that is at least amount, which is at least base. ok is false if the result
// exceeds an int64. A step of 0 represents a step that is too large.
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

// permitted reports whether a policy permits an amount. The default of the policy is always permitted.
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

// unit is the unit of amounts in calculations with steps.
type unit int

const (
	whole unit = iota
	milli
)

// unitOf returns milli if the feature is on and the whole range can be counted in it.
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

// value returns a quantity in the unit, rounded up.
func (u unit) value(q resource.Quantity) int64 {
	if u == milli {
		return q.MilliValue()
	}
	return q.Value()
}

// exact returns the value in the unit. It returns false if the value overflows, or if the value in milli units was rounded.
func (u unit) exact(q resource.Quantity) (int64, bool) {
	if u == whole {
		return q.Value(), q.CmpInt64(math.MaxInt64) <= 0
	}
	value := q.MilliValue()
	return value, q.Cmp(*resource.NewMilliQuantity(value, q.Format)) == 0
}

// step returns the value of a positive quantity, or 0 if it is too large.
func (u unit) step(q resource.Quantity) int64 {
	value, ok := u.exact(q)
	if !ok {
		return 0
	}
	return value
}

// quantity returns the quantity of a value.
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
