// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// valued is list.map(x, value), treated as the list of the devices. It fails if the value of a device fails.
type valued struct{ Mapped }

func (v valued) membership(s *propagate.State, device int) outcome.Outcome {
	return filtered{v.List, v.Slot, present{v.Value}}.membership(s, device)
}

// ofDevices converts the size of a filtered list of values to the size of a filtered list of devices. Both sizes are equal if
// no value fails.
func (n size) ofDevices() (l *propagate.Leaf, simpler size, ok bool) {
	values, ok := n.list.(valued)
	if !ok {
		return nil, n, false
	}
	chosen, ok := values.List.(filtered)
	if !ok {
		return nil, n, false
	}
	all, ok := chosen.list.(valued)
	if !ok {
		return nil, n, false
	}
	l, ok = all.Column()
	of, same := values.LeafOf()
	return l, size{filtered{AllDevices{}, chosen.slot, chosen.keeps}}, ok && same && of == l
}

// present is true if a device has a value, and fails otherwise.
type present struct{ value propagate.Quantity }

func (p present) Bound(s *propagate.State) outcome.Outcome { return presence(s, p.value) }

// presence returns True if the quantity has a value, Error if it fails, and both if either is possible.
func presence(s *propagate.State, q propagate.Quantity) outcome.Outcome {
	if v, tabulated := q.(propagate.Value); tabulated {
		if v.Entry(s).Outcome == outcome.Error {
			return outcome.Error
		}
		return outcome.True
	}
	switch n := q.Number(s); {
	case n.IsNever():
		return outcome.Error
	case n.Open || n.Fails:
		return outcome.True | outcome.Error
	default:
		return outcome.True
	}
}

// NewValued returns the list of values list.map(x, value) as a list of devices.
func NewValued(m Mapped) DeviceList { return valued{m} }
