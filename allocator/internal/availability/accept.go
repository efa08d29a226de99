// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/inventory"
)

// Shortage is what is missing of a device that somebody else has chosen.
type Shortage int

const (
	// NoShortage means that the device was to be had.
	NoShortage Shortage = iota
	// InUse means that somebody has the device as a whole.
	InUse
	// SharesInUse means that the device was chosen as a whole, and somebody has shares of it.
	SharesInUse
	// NoCapacity means that what the share consumes is not left of one of the device's capacities.
	NoCapacity
	// NoCounters means that what the device consumes is not left of the pool's counters, or the device is
	// not compatible with others that consume them.
	NoCounters
)

// Accept takes a device that somebody else has chosen, a share of it if the candidate is shared, of
// which it is said what it consumes. The name is that of the capacity of which there is not enough.
//
// It asks for no more than what is left: whether the device is what was asked for, and whether its
// node can use it, is not looked at. A candidate without a Device is known by its ID only. What
// devices consume that are not published any more is not known, and counts as nothing here.
func (a *Availability) Accept(c *inventory.Candidate, consumed capacity.Amounts) (Shortage, resourceapi.QualifiedName) {
	if a.allocated.Has(c.Position) || a.taken.Has(c.Position) {
		return InUse, ""
	}
	if !c.Shared && a.IsShared(c) {
		return SharesInUse, ""
	}
	if c.Device != nil {
		if c.Shared {
			if name, overdrawn := capacity.Overdrawn(c.Device, consumed, a.shares[c.Position], a.state.AggregatedCapacity[c.ID]); overdrawn {
				return NoCapacity, name
			}
		}
		if _, ok := a.reserve(c); !ok {
			return NoCounters, ""
		}
	}
	if c.Shared {
		a.shares[c.Position] = append(a.shares[c.Position], consumed)
	} else {
		a.taken.Add(c.Position)
	}
	return NoShortage, ""
}
