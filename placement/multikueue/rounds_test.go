// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRounds(t *testing.T) {
	t.Parallel()
	for passed, want := range map[time.Duration]struct {
		taken int
		next  time.Duration
	}{
		-time.Hour:          {1, 5 * time.Minute},
		0:                   {1, 5 * time.Minute},
		time.Minute:         {1, 4 * time.Minute},
		5 * time.Minute:     {2, 5 * time.Minute},
		9 * time.Minute:     {2, time.Minute},
		10 * time.Minute:    {3, 0},
		time.Hour:           {3, 0},
		math.MaxInt64:       {3, 0},
		math.MinInt64 + 100: {1, 5 * time.Minute},
	} {
		taken, next := rounds(passed, 5*time.Minute, 3)
		require.Equal(t, want.taken, taken, passed)
		require.Equal(t, want.next, next, passed)
	}
	taken, next := rounds(math.MaxInt64, 1, 1)
	require.Equal(t, 1, taken)
	require.Zero(t, next)
}
