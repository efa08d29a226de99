// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// TestShares checks that all shares together never exceed the limit. If a client loses a share to another client, the other
// client then uses at most as much as the first one used.
func TestShares(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		shares := NewShares(limit)
		has := map[string]int{}
		evicted := map[*Share]bool{}
		var joined []*Share
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(joined) == 0 || rapid.IntRange(0, 3).Draw(t, "join") == 0 {
				name := strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "client"))
				var share *Share
				share = shares.Join(name, func() { evicted[share] = true })
				joined = append(joined, share)
				continue
			}
			share := rapid.SampledFrom(joined).Draw(t, "share")
			before := map[string]int{}
			for name := range has {
				before[name] = has[name]
			}
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				share.Return()
			case 1:
				require.Equal(t, !share.ended, share.Keep())
			default:
				amount := rapid.IntRange(1, limit+1).Draw(t, "amount")
				gone := len(evicted)
				if share.Try(amount) {
					require.LessOrEqual(t, amount, limit)
					require.False(t, evicted[share])
				} else if gone == len(evicted) && !share.ended && amount <= limit {
					require.Greater(t, shares.used+amount, limit, "refused although there was room")
				}
			}
			sum := 0
			clear(has)
			for _, one := range joined {
				if !one.ended {
					sum += one.used
					has[one.client] += one.used
				}
			}
			for name, amount := range before {
				if name != share.client && has[name] < amount {
					require.GreaterOrEqual(t, amount, has[share.client], "%s lost to one with more", name)
				}
			}
			require.Equal(t, sum, shares.used)
			require.LessOrEqual(t, sum, limit)
		}
		for _, share := range joined {
			share.Return()
		}
		require.Zero(t, shares.used)
		require.Empty(t, shares.clients)
	})
}

func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shares := NewShares(3)
		first, second := shares.Join("a", func() {}), shares.Join("b", func() {})
		require.True(t, first.Try(2))
		require.True(t, first.Keep())
		begun := time.Now()
		time.AfterFunc(time.Minute, first.Return)
		require.NoError(t, second.Take(t.Context(), 3))
		require.Equal(t, time.Minute, time.Since(begun))

		cause := errors.New("cause")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		third := shares.Join("b", func() {})
		require.ErrorIs(t, third.Take(ctx, 1), cause)
		require.True(t, second.Keep())
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := NewBodies(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		refused := func(body io.Reader) (status int, message string) {
			recorder := httptest.NewRecorder()
			bodies.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
			return recorder.Code, strings.TrimSpace(recorder.Body.String())
		}
		status, message := refused(iotest.ErrReader(errors.New("time-out")))
		require.Equal(t, http.StatusRequestTimeout, status)
		require.Equal(t, errTooSlow.Error(), message)

		all := bodies.small.Join("another", nil)
		require.True(t, all.Try(smallBodies))
		begun := time.Now()
		status, message = refused(strings.NewReader("x"))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, errTooMany.Error(), message)
		require.Equal(t, patience, time.Since(begun))
		all.Return()
		status, _ = refused(strings.NewReader("x"))
		require.Equal(t, http.StatusOK, status)
	})
}
