// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/fairness"
)

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		background := fairness.NewBackground[int](ctx)
		done := make(chan int, 10)
		add := func(tenant string, key int) {
			background.Add(tenant, key, func(ctx context.Context) {
				require.Equal(t, tenant, fairness.TenantIn(ctx))
				time.Sleep(time.Second)
			}, func() { done <- key })
		}
		add("a", 1)
		add("a", 2)
		add("a", 2)
		add("a", 1)
		time.Sleep(time.Millisecond)
		add("b", 3)
		time.Sleep(10 * time.Second)
		for _, want := range []int{1, 3, 2} {
			require.Equal(t, want, <-done, "one of each tenant at a time, each key once")
		}
		add("a", 1)
		require.Equal(t, 1, <-done, "a key that has ended comes again")

		begun := time.Now()
		add("a", 4)
		add("a", 5)
		synctest.Wait()
		cancel()
		time.Sleep(time.Second)
		require.Equal(t, 4, <-done)
		require.Equal(t, 5, <-done, "it ends without having begun")
		require.Equal(t, time.Second, time.Since(begun).Truncate(time.Second))
	})
}
