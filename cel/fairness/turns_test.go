// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/fairness"
)

// TestTurns tests that tenants take turns, although the many callers of one tenant arrive before the callers of two other
// tenants.
func TestTurns(t *testing.T) {
	for _, concurrent := range []int{1, 2} {
		t.Run(fmt.Sprint(concurrent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := fairness.NewTurns(concurrent, 0)
				var mutex sync.Mutex
				var done []string
				running, most := map[string]int{}, 0
				work := func(tenant string) {
					end, err := turns.Take(t.Context(), tenant)
					require.NoError(t, err)
					defer end()
					mutex.Lock()
					running[tenant]++
					require.Equal(t, 1, running[tenant], "one of each tenant")
					most = max(most, len(running))
					mutex.Unlock()
					time.Sleep(time.Second)
					mutex.Lock()
					defer mutex.Unlock()
					delete(running, tenant)
					done = append(done, tenant)
				}
				var all sync.WaitGroup
				for _, tenant := range []string{"many", "many", "many", "many", "many", "many", "few", "few", "one"} {
					all.Go(func() { work(tenant) })
					synctest.Wait()
				}
				all.Wait()
				require.Equal(t, concurrent, most)
				if concurrent == 1 {
					require.Equal(t, []string{"many", "many", "few", "one", "many", "few", "many", "many", "many"}, done)
				}
				require.Len(t, done, 9)
			})
		})
	}
}

func TestTurnsOfCallersThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fairness.NewTurns(1, 0)
		end, err := turns.Take(t.Context(), "a")
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := make(chan error)
		for range 2 {
			go func() {
				_, err := turns.Take(ctx, "b")
				errs <- err
			}()
		}
		synctest.Wait()
		cancel(fmt.Errorf("gone"))
		require.EqualError(t, <-errs, "gone")
		require.EqualError(t, <-errs, "gone")
		end()
		_, err = turns.Take(ctx, "b")
		require.EqualError(t, err, "gone", "although there is a turn")
		end, err = turns.Take(t.Context(), "c")
		require.NoError(t, err, "no turn was lost")
		end()
	})
}

func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fairness.NewTurns(1, 1)
		end, err := turns.Take(t.Context(), "a")
		require.NoError(t, err)
		go func() {
			end, err := turns.Take(t.Context(), "a")
			if err == nil {
				end()
			}
		}()
		synctest.Wait()
		_, err = turns.Take(t.Context(), "a")
		require.ErrorIs(t, err, fairness.ErrTooMany)
		end()
		synctest.Wait()
	})
}

func TestTenant(t *testing.T) {
	require.Empty(t, fairness.TenantIn(t.Context()))
	require.Equal(t, "a", fairness.TenantIn(fairness.WithTenant(t.Context(), "a")))
}

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
