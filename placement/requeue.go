// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import "time"

// horizon is the earliest of several times, zero if there is none.
type horizon struct {
	time time.Time
}

// at adds a time; zero adds nothing.
func (h *horizon) at(t time.Time) {
	if !t.IsZero() && (h.time.IsZero() || t.Before(h.time)) {
		h.time = t
	}
}

// after adds the first moment after a time.
func (h *horizon) after(t time.Time) { h.at(t.Add(time.Nanosecond)) }
