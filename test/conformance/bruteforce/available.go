// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// available tells whether the devices of an assignment can be had beside those of
// earlier claims and what was allocated before.
func (s *solver) available(assignment []choice) bool {
	together := slices.Concat(slices.Concat(s.chosen...), assignment)
	return s.free(assignment) && s.haveCapacity(together) && s.haveCounters(together)
}

// free tells whether nobody else has the devices: neither anybody before nor, in
// this solution, an earlier claim. Admin access does not care.
func (s *solver) free(assignment []choice) bool {
	taken := sets.New(s.State.AllocatedDevices.UnsortedList()...)
	for _, earlier := range s.chosen {
		for _, c := range earlier {
			if !c.device.shared {
				taken.Insert(c.device.id)
			}
		}
	}
	for _, c := range assignment {
		if taken.Has(c.device.id) && !c.request.adminAccess {
			return false
		}
	}
	return true
}

// wanted is what a request consumes of a capacity: all, unless it says less.
func (r *request) wanted(name resourceapi.QualifiedName, capacity resourceapi.DeviceCapacity) resource.Quantity {
	if amount, found := r.capacity[name]; found {
		return amount
	}
	return capacity.Value
}

// isLargeEnough tells whether the device has the capacities that are requested, if
// nobody else used it.
func (s *solver) isLargeEnough(r *request, d *device) bool {
	if !s.Features.ConsumableCapacity {
		return true
	}
	for name := range r.capacity {
		if _, found := d.Capacity[name]; !found {
			return false
		}
	}
	return s.fits(d, []*request{r}, nil)
}

// fits tells whether a device has room for all requests beside what is consumed.
func (s *solver) fits(d *device, requests []*request, consumed structured.ConsumedCapacity) bool {
	for name, capacity := range d.Capacity {
		var total resource.Quantity
		if before := consumed[name]; before != nil {
			total = before.DeepCopy()
		}
		for _, r := range requests {
			total.Add(r.wanted(name, capacity))
		}
		if total.Cmp(capacity.Value) > 0 {
			return false
		}
	}
	return true
}

// haveCapacity adds up what the requests for each shared device consume.
func (s *solver) haveCapacity(choices []choice) bool {
	if !s.Features.ConsumableCapacity {
		return true
	}
	sharing := make(map[*device][]*request)
	for _, c := range choices {
		if c.device.shared {
			sharing[c.device] = append(sharing[c.device], c.request)
		} else if !s.fits(c.device, []*request{c.request}, s.State.AggregatedCapacity[c.device.id]) {
			return false
		}
	}
	for d, requests := range sharing {
		if !s.fits(d, requests, s.State.AggregatedCapacity[d.id]) {
			return false
		}
	}
	return true
}

// haveCounters adds up what the devices consume of the counters of each pool, those
// that were allocated before included. Devices without counters are not asked, and
// a shared device consumes them once.
func (s *solver) haveCounters(choices []choice) bool {
	consuming := make(map[*pool][]*device)
	for _, c := range choices {
		d := c.device
		if len(d.ConsumesCounters) == 0 || d.shared && (s.wasShared(d) || slices.Contains(consuming[d.pool], d)) {
			continue
		}
		consuming[d.pool] = append(consuming[d.pool], d)
	}
	for p, devices := range consuming {
		for _, d := range p.published {
			if s.State.AllocatedDevices.Has(d.id) || s.wasShared(d) {
				devices = append(devices, d)
			}
		}
		for _, set := range p.sets {
			for name, counter := range set.Counters {
				if total := consumption(devices, set.Name, name); total.Cmp(counter.Value) > 0 {
					return false
				}
			}
		}
	}
	return true
}

func consumption(devices []*device, set, counter string) resource.Quantity {
	var total resource.Quantity
	for _, d := range devices {
		for _, consumes := range d.ConsumesCounters {
			if consumes.CounterSet == set {
				total.Add(consumes.Counters[counter].Value)
			}
		}
	}
	return total
}

// wasShared tells whether somebody before has a share of the device.
func (s *solver) wasShared(d *device) bool {
	if _, found := s.State.AggregatedCapacity[d.id]; found {
		return true
	}
	for share := range s.State.AllocatedSharedDeviceIDs {
		if share.GetDeviceID() == d.id {
			return true
		}
	}
	return false
}
