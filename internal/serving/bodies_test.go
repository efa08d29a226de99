// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
