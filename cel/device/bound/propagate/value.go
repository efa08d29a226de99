// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device/bound/outcome"

// Entry returns what the leaf is for the devices.
func (v Value) Entry(s *State) *Entry {
	e := s.entry(v)
	s.aborted = s.aborted || e.aborts
	return e
}

// Bound is the outcome of the entry.
func (v Value) Bound(s *State) outcome.Outcome { return v.Entry(s).Outcome }

// Number is the number of the entry.
func (v Value) Number(s *State) outcome.Number { return v.Entry(s).Number }
