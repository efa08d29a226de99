// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bound/outcome"

func (v value) entry(s *state) *entry {
	e := s.entry(v)
	s.aborted = s.aborted || e.aborts
	return e
}

func (v value) bound(s *state) outcome.Outcome { return v.entry(s).outcome }

func (v value) number(s *state) outcome.Number { return v.entry(s).number }
