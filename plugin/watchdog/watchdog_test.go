// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

func TestCheckFailsWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := 0
		w := New(clock.RealClock{}, DefaultTimeout, func() { stuck++ })
		go w.Run(t.Context())
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		require.NoError(t, w.Check())
		pass(time.Hour)
		require.NoError(t, w.Check(), "nothing is to be done")
		w.Began(&v1.Pod{})
		pass(DefaultTimeout - 1)
		require.NoError(t, w.Check())
		pass(1)
		require.EqualError(t, w.Check(), "a scheduling cycle has made no progress for 30s, the limit is 30s")
		require.Equal(t, DefaultTimeout, w.Age())
		pass(time.Minute)
		require.Equal(t, 1, stuck, "a cycle counts once")

		w.Began(&v1.Pod{})
		require.NoError(t, w.Check(), "that is progress")
		pass(DefaultTimeout + lookInterval)
		require.Equal(t, 2, stuck)
		w.Ended()
		require.NoError(t, w.Check())
		require.Zero(t, w.Age())
	})
}
