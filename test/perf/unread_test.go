// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/shape"
)

// unread means ring-12-4 and is written so that nothing can be told from a part of a
// set: lists of lists are not read.
const unread = "[devices.map(d, d.attributes['mla.example.com'].index)].flatten().max() - " +
	"[devices.map(d, d.attributes['mla.example.com'].index)].flatten().min() == 3"

func ringOfTwelve(tb testing.TB) shape.Scenario {
	tb.Helper()
	s := scenarioNamed(tb, "ring-12-4")
	s.Expression = unread
	return s
}

// TestUnreadIsUnread: each set is evaluated, up to the answer.
func TestUnreadIsUnread(t *testing.T) {
	s := ringOfTwelve(t)
	h := newHardware(t, s, 1)
	for _, o := range s.Occupancies {
		f := h.occupied([]shape.Set{o.InUse})
		claim, err := f.Claim()
		require.NoError(t, err)
		a, err := f.celset(t.Context(), newCache())
		require.NoError(t, err)
		f.requireVerified(t, a, claim)
		require.Equal(t, f.Sets(f.free[0]).Int64(), a.Stats().Evaluations, o.Name)
	}
}
