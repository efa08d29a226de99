// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReadingTakesTurns checks that large bodies are decoded one at a time, that waiting ends with the request, and that small
// bodies don't wait.
func TestReadingTakesTurns(t *testing.T) {
	end, err := decodingTurns.Take(t.Context(), "another")
	require.NoError(t, err)
	ctx := t.Context()
	read := func(size int) error {
		body := `{"metadata": {"namespace": "ns", "name": "new", "annotations": {"long": "` + strings.Repeat("x", size) + `"}}}`
		_, err := decode(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, Path, strings.NewReader(body)), "somebody")
		return err
	}
	require.NoError(t, read(smallBody/2))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, read(smallBody), "the server is busy with other requests; try again later")
	end()
	ctx = t.Context()
	require.NoError(t, read(smallBody))
}

// TestReadingIsBoundedForAUser checks the limit of waiting requests of one user.
func TestReadingIsBoundedForAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, err := decodingTurns.Take(t.Context(), "another")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		for range maxWaiting {
			go func() { _, _ = decodingTurns.Take(ctx, "somebody") }()
		}
		synctest.Wait()
		body := `{"metadata": {"namespace": "ns", "name": "new", "annotations": {"long": "` + strings.Repeat("x", smallBody) + `"}}}`
		_, err = decode(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, Path, strings.NewReader(body)), "somebody")
		require.ErrorContains(t, err, "8 Placements from you are waiting to be read; try again later")
		cancel()
		synctest.Wait()
		end()
	})
}
