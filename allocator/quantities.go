// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/apis/compat"
)

// The API server accepts an amount such as 1e2000000000 and stores it as written. Comparing it or adding to it would compute
// two billion digits, in this program or any other. So celset checks amounts when it reads slices and claims.

// maxDigits limits the digits of an amount before and after the decimal point. It is enough for an int64 in exa-units.
const maxDigits = 38

// inRange reports whether an amount is small enough for arithmetic. inRange itself does no arithmetic with the amount.
func inRange(q *resource.Quantity) bool {
	if q == nil {
		return true
	}
	amount := q.DeepCopy()
	d := amount.AsDec()
	scale := int64(d.Scale())
	return scale <= maxDigits && scale >= -maxDigits && int64(digits(d.UnscaledBig()))-scale <= maxDigits
}

// digits returns a close upper bound of the number of decimal digits of n.
func digits(n *big.Int) int { return n.BitLen()*30103/100000 + 1 }

// LimitQuantities removes amounts from a slice that have more than maxDigits digits before or after the decimal point. It
// deletes capacities with such amounts, and devices that consume such amounts of counters or of node resources. It sets
// counters with such amounts to zero. It returns a description of each change.
func LimitQuantities(slice *resourceapi.ResourceSlice) (removed []string) {
	for i := range slice.Spec.SharedCounters {
		set := &slice.Spec.SharedCounters[i]
		for _, name := range outOfRange(set.Counters) {
			set.Counters[name] = resourceapi.Counter{}
			removed = append(removed, fmt.Sprintf("counter %s of %s", name, set.Name))
		}
	}
	slice.Spec.Devices = slices.DeleteFunc(slice.Spec.Devices, func(device resourceapi.Device) bool {
		for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
			capacity := device.Capacity[name]
			if !capacityInRange(&capacity) {
				delete(device.Capacity, name)
				removed = append(removed, fmt.Sprintf("capacity %s of device %s", name, device.Name))
			}
		}
		unusable := slices.ContainsFunc(device.ConsumesCounters, func(c resourceapi.DeviceCounterConsumption) bool { return len(outOfRange(c.Counters)) > 0 })
		for _, quantity := range compat.NodeAllocatable(&device) {
			unusable = unusable || !inRange(quantity)
		}
		if unusable {
			removed = append(removed, "device "+device.Name)
		}
		return unusable
	})
	return removed
}

// outOfRange returns the sorted names of the counters whose amounts are out of range.
func outOfRange(counters map[string]resourceapi.Counter) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		counter := counters[name]
		if !inRange(&counter.Value) {
			names = append(names, name)
		}
	}
	return names
}

func capacityInRange(c *resourceapi.DeviceCapacity) bool {
	if !inRange(&c.Value) {
		return false
	}
	policy := c.RequestPolicy
	if policy == nil {
		return true
	}
	for i := range policy.ValidValues {
		if !inRange(&policy.ValidValues[i]) {
			return false
		}
	}
	valid := policy.ValidRange
	return inRange(policy.Default) && (valid == nil || inRange(valid.Min) && inRange(valid.Max) && inRange(valid.Step))
}

// CheckQuantities returns an error if a claim requests an amount that is out of range.
func CheckQuantities(claim *resourceapi.ResourceClaim) error {
	for r := range requests.Each(claim) {
		if r.Spec.Capacity == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.Spec.Capacity.Requests)) {
			amount := r.Spec.Capacity.Requests[name]
			if !inRange(&amount) {
				return fmt.Errorf("claim %s/%s, request %s: the amount of capacity %s is out of range: use at most %d digits before and after the decimal point",
					claim.Namespace, claim.Name, r.Name, name, maxDigits)
			}
		}
	}
	return nil
}
