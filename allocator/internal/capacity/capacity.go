// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity calculates with the capacities of devices.
//
// Consumable capacity (KEP-5075): a device that allows multiple allocations is shared, and each share consumes some of the
// device's capacities. A share consumes the requested amount or a default, rounded up by the request policy of the capacity.
//
// For a device that is not shared, the same calculation shows whether the device has the requested capacity.
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
	// ErrNotRepresentable fails the whole allocation, because other devices would not help.
	ErrNotRepresentable = errors.New("capacity request cannot be represented in the device's range arithmetic")
	// ErrNegative fails the whole allocation, because other devices would not help.
	ErrNegative = errors.New("capacity value is negative")
)

// Amounts maps the name of a capacity to an amount.
type Amounts map[resourceapi.QualifiedName]resource.Quantity

// Consumed returns the amounts that the request consumes if it gets the device. ok is false if even an unused device can't
// serve the request, because the device lacks a capacity or a policy forbids the amount.
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

// CanServe reports whether the device can serve the request in addition to its other users. shares holds the consumption of
// some users separately. rest holds the total consumption of all other users. It may be nil.
func CanServe(device *resourceapi.Device, request *resourceapi.CapacityRequirements, fractional bool, shares []Amounts, rest map[resourceapi.QualifiedName]*resource.Quantity) (bool, error) {
	fits := true
	ok, err := eachConsumed(device, request, fractional, func(name resourceapi.QualifiedName, amount resource.Quantity) {
		fits = fits && isAvailable(device, name, amount, shares, rest)
	})
	return ok && fits, err
}

// isAvailable reports whether an amount of a capacity is available in addition to shares and rest. amount must be a deep copy,
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

// Exceeded returns the first capacity with too little available for a share, in addition to shares and rest. It ignores
// capacities that the device lacks, unless the amount is negative.
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

// eachConsumed calls visit with a copy of each consumed amount. If ok is false or err is not nil, the amounts are meaningless.
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

// consumedAmount returns the request rounded up to an amount that the policy permits, or the default if requested is false.
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

// roundUpToValue returns the smallest of the ascending values that is at least request. If all values are smaller, it returns
// the request unchanged, and permitted later refuses it.
func roundUpToValue(request resource.Quantity, values []resource.Quantity) resource.Quantity {
	for _, value := range values {
		if value.Cmp(request) >= 0 {
			return value.DeepCopy()
		}
	}
	return request.DeepCopy()
}

// roundUpInRange returns the smallest min + n*step that is at least request.
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

// ceilToStep returns the smallest base + n*step that is at least amount. amount must be at least base. ok is false if the
// result exceeds an int64. A step of 0 represents a step that is too large.
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

// unitOf returns milli if the feature for fractions is on and milli can represent the whole range. Otherwise it returns whole.
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

// value returns a quantity counted in the unit, rounded up.
func (u unit) value(q resource.Quantity) int64 {
	if u == milli {
		return q.MilliValue()
	}
	return q.Value()
}

// exact returns a quantity counted in the unit. It returns false if the value overflows or a value in milli was rounded.
func (u unit) exact(q resource.Quantity) (int64, bool) {
	if u == whole {
		return q.Value(), q.CmpInt64(math.MaxInt64) <= 0
	}
	value := q.MilliValue()
	return value, q.Cmp(*resource.NewMilliQuantity(value, q.Format)) == 0
}

// step returns a positive quantity counted in the unit, or 0 if it is too large.
func (u unit) step(q resource.Quantity) int64 {
	value, ok := u.exact(q)
	if !ok {
		return 0
	}
	return value
}

// quantity converts a value in the unit to a quantity.
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
