// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// valued is a list of values as a list of the devices that have them. It fails where a
// value does.
type valued struct{ Mapped }

func (v valued) membership(s *propagate.State, device int) outcome.Outcome {
	return filtered{v.List, v.Slot, present{v.Value}}.membership(s, device)
}

// ofDevices is the size of a list of values of all devices, chosen by a condition, as that of a list of devices. It is right as long
// as no value fails.
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

// present is true for the devices that have a value, and fails for others.
type present struct{ value propagate.Quantity }

func (p present) Bound(s *propagate.State) outcome.Outcome { return presence(s, p.value) }

// presence is True if there is a value, and Error if it fails.
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

// NewValued is a list of values.
func NewValued(m Mapped) DeviceList { return valued{m} }
