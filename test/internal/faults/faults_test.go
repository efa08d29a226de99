// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	pods  = "/api/v1/namespaces/default/pods"
	watch = "/api/v1/pods?watch=true"
)

// A server is an API server that counts its requests. Its watches send increasing numbers as events.
type server struct {
	*Faults
	url      string
	requests atomic.Int64
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.requests.Add(1)
		for i := 0; r.URL.Query().Has("watch"); i++ {
			_, _ = fmt.Fprintln(w, i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		_, _ = fmt.Fprint(w, n)
	}))
	t.Cleanup(api.Close)
	target, err := url.Parse(api.URL)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.Faults = New(1, transport)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: s, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	t.Cleanup(proxy.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s.url = proxy.URL
	return s
}

func (s *server) send(t *testing.T, method, path string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader("{}"))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	return response, err
}

func TestFaultsOfRequests(t *testing.T) {
	s := newServer(t)
	for _, tc := range []struct {
		kind         Kind
		method, path string
		codes        []int // 0 means that the connection ends without a response
		seen         int64 // number of requests that reached the API server
	}{
		{kind: Conflict, method: http.MethodPut, path: pods + "/a", codes: []int{http.StatusConflict}},
		{kind: Conflict, method: http.MethodPatch, path: pods + "/a", codes: []int{http.StatusConflict}},
		{kind: Conflict, method: http.MethodPost, path: pods, codes: []int{http.StatusOK}, seen: 1},
		{kind: Conflict, method: http.MethodGet, path: pods + "/a", codes: []int{http.StatusOK}, seen: 1},
		{kind: Throttled, method: http.MethodGet, path: pods, codes: []int{http.StatusTooManyRequests}},
		{kind: Failed, method: http.MethodDelete, path: pods + "/a", codes: []int{500, 502, 503, 504}},
		{kind: Delayed, method: http.MethodPost, path: pods, codes: []int{http.StatusOK}, seen: 1},
		{kind: RequestLost, method: http.MethodPost, path: pods},
		{kind: AnswerLost, method: http.MethodPut, path: pods + "/a", seen: 1},
		{kind: AnswerLost, method: http.MethodPost, path: pods, seen: 1},
		{kind: AnswerLost, method: http.MethodGet, path: pods, codes: []int{http.StatusOK}, seen: 1},
		{kind: WatchTooOld, method: http.MethodGet, path: watch, codes: []int{http.StatusGone}},
		{kind: WatchTooOld, method: http.MethodGet, path: pods, codes: []int{http.StatusOK}, seen: 1},
	} {
		t.Run(string(tc.kind)+" "+tc.method+" "+tc.path, func(t *testing.T) {
			s.Set(Mix{tc.kind: 1000})
			before, counted := s.requests.Load(), s.Counts()[tc.kind]
			response, err := s.send(t, tc.method, tc.path)
			if tc.codes == nil {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.NoError(t, err)
				require.Contains(t, tc.codes, response.StatusCode)
			}
			require.Equal(t, tc.seen, s.requests.Load()-before)
			met := tc.codes == nil || tc.codes[0] != http.StatusOK || tc.kind == Delayed
			require.Equal(t, met, s.Counts()[tc.kind] > counted)
			if tc.kind == Throttled {
				require.Equal(t, "1", response.Header.Get("Retry-After"))
			}
		})
	}
	s.Set(None)
	response, err := s.send(t, http.MethodPut, pods+"/a")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// numbers is the body of a watch. It contains increasing numbers until it is closed.
type numbers struct {
	next  int
	ended chan struct{}
}

func (n *numbers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: &numbers{ended: make(chan struct{})}}, nil
}

func (n *numbers) Read(p []byte) (int, error) {
	select {
	case <-n.ended:
		return 0, io.ErrClosedPipe
	case <-time.After(10 * time.Millisecond):
		n.next++
		return copy(p, fmt.Sprintln(n.next-1)), nil
	}
}

func (n *numbers) Close() error {
	close(n.ended)
	return nil
}

// TestFaultsOfWatches applies each fault to watches. The events that a watch returns must be in order and without gaps.
func TestFaultsOfWatches(t *testing.T) {
	for _, kind := range []Kind{WatchEnded, WatchHeld, WatchSkipped} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := New(1, &numbers{})
				begin := func() *http.Response {
					response, err := f.RoundTrip(httptest.NewRequest(http.MethodGet, watch, nil))
					require.NoError(t, err)
					t.Cleanup(func() { _ = response.Body.Close() })
					return response
				}
				f.Set(Mix{kind: 1000})
				response := begin()
				f.Set(None)
				began, lines, longest := time.Now(), bufio.NewScanner(response.Body), time.Duration(0)
				for n, last := 0, began; time.Since(began) < 2*maxWatch && lines.Scan(); n++ {
					require.Equal(t, fmt.Sprint(n), lines.Text())
					longest, last = max(longest, time.Since(last)), time.Now()
				}
				took := time.Since(began)
				if kind == WatchHeld {
					require.NoError(t, lines.Err(), "it goes on")
					require.Greater(t, longest, time.Second/10, "it was silent for a while")
					require.LessOrEqual(t, longest, maxSilence+10*time.Millisecond)
				} else {
					require.Error(t, lines.Err())
					require.LessOrEqual(t, took, maxWatch+maxSilence)
				}
				require.Equal(t, kind == WatchSkipped, begin().StatusCode == http.StatusGone, "who has missed something is told")
				require.Equal(t, http.StatusOK, begin().StatusCode, "once")
			})
		})
	}
}
