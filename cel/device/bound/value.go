// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

func (v value) entry(s *state) *entry {
	e := s.entry(v)
	s.aborted = s.aborted || e.aborts
	return e
}

func (v value) bound(s *state) Outcome { return v.entry(s).outcome }

func (v value) number(s *state) number { return v.entry(s).number }
