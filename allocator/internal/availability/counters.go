// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/allocator/internal/inventory"
)

// MostByCounters returns how many of the devices the shared counters permit at
// most.
//
// Each device that consumes counters is assigned to the first counter set that it
// consumes, and for each counter set a counter that all assigned devices consume
// limits their number: what is left of it, divided by the least that one of them
// takes.
func (a *Availability) MostByCounters(devices []*inventory.Candidate) int {
	most := 0
	limited := make(map[counterSet][]*inventory.Candidate)
	for _, c := range devices {
		if len(c.Device.ConsumesCounters) == 0 || c.Shared {
			most++
			continue
		}
		key := counterSet{c.Pool, c.Device.ConsumesCounters[0].CounterSet}
		limited[key] = append(limited[key], c)
	}
	for key, members := range limited {
		most += a.mostOfSet(key, members)
	}
	return most
}

// counterSet identifies a counter set.
type counterSet struct {
	pool *inventory.Pool
	name string
}

func (a *Availability) mostOfSet(key counterSet, members []*inventory.Candidate) int {
	most := len(members)
	left := a.CountersOf(key.pool).Left(key.name)
	for name, rest := range left {
		least, limiting := leastConsumed(members, name)
		if limiting {
			most = min(most, quotient(rest, least, most))
		}
	}
	return most
}

// leastConsumed is the least that one of the devices consumes of a counter of
// their first counter set. limiting is false if one of them consumes nothing.
func leastConsumed(members []*inventory.Candidate, name string) (least resource.Quantity, limiting bool) {
	for i, c := range members {
		consumed, found := c.Device.ConsumesCounters[0].Counters[name]
		if !found || consumed.Value.Sign() <= 0 {
			return least, false
		}
		if i == 0 || consumed.Value.Cmp(least) < 0 {
			least = consumed.Value
		}
	}
	return least, true
}

// quotient is how many times a goes into rest, limit if that is less.
func quotient(rest, a resource.Quantity, limit int) int {
	count := 0
	for sum := a.DeepCopy(); count < limit && sum.Cmp(rest) <= 0; sum.Add(a) {
		count++
	}
	return count
}
