// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is an API server that only remembers what it was asked.
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (r *recorder) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request.Method+" "+request.URL.Path)
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

func newRecorder(t *testing.T) (*recorder, *gate) {
	t.Helper()
	r := &recorder{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	api, err := url.Parse(server.URL)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return r, newGate(api, transport)
}

const (
	podsPath   = "/api/v1/namespaces/ns/pods"
	claimsPath = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
)

// ask sends a request through the gate. It returns the status, or 0 without an answer.
func ask(t *testing.T, g *gate, method, path string) int {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, g.server.URL+path, strings.NewReader("{}"))
	if err != nil {
		t.Error(err)
		return 0
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func TestGateStopsBeforeAndAfterAWrite(t *testing.T) {
	bindPath := "POST " + podsPath + "/b/binding"
	for side, want := range map[side][]string{
		before: {"POST " + podsPath + "/a/binding"},
		after:  {"POST " + podsPath + "/a/binding", bindPath},
	} {
		t.Run(string(side), func(t *testing.T) {
			api, g := newRecorder(t)
			trap := g.arm(point{bind, side}, 2)
			require.Equal(t, http.StatusOK, ask(t, g, http.MethodPost, podsPath+"/a/binding"))
			require.False(t, isClosed(trap.sprung))

			var waiting sync.WaitGroup
			waiting.Go(func() { assert.Zero(t, ask(t, g, http.MethodPost, podsPath+"/b/binding"), "the answer is lost") })
			trap.await(t)
			require.Equal(t, want, api.seen())

			waiting.Go(func() { assert.Zero(t, ask(t, g, http.MethodPut, claimsPath+"/c/status"), "no write passes any more") })
			require.Equal(t, http.StatusOK, ask(t, g, http.MethodGet, claimsPath), "reads do")
			time.Sleep(10 * time.Millisecond) // a wrong gate would let it pass
			g.close()
			waiting.Wait()
			require.Equal(t, append(want, "GET "+claimsPath), api.seen())
		})
	}
}

func TestGateDelaysAWrite(t *testing.T) {
	api, g := newRecorder(t)
	trap := g.delay(bind, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.Equal(t, http.StatusOK, ask(t, g, http.MethodPost, podsPath+"/a/binding")) })
	trap.await(t)
	require.Empty(t, api.seen())
	require.Equal(t, http.StatusOK, ask(t, g, http.MethodPost, podsPath+"/b/binding"), "others pass")
	trap.release()
	waiting.Wait()
	require.Equal(t, []string{"POST " + podsPath + "/b/binding", "POST " + podsPath + "/a/binding"}, api.seen())

	trap = g.delay(bind, 1)
	waiting.Go(func() { assert.Zero(t, ask(t, g, http.MethodPost, podsPath+"/c/binding"), "never released") })
	trap.await(t)
	g.close()
	waiting.Wait()
	require.Len(t, api.seen(), 2)
}

func TestGateRefusesBindings(t *testing.T) {
	api, g := newRecorder(t)
	defer g.close()
	trap := g.arm(point{unreserve, before}, 1)
	require.Equal(t, http.StatusForbidden, ask(t, g, http.MethodPost, podsPath+"/a/binding"))
	require.Equal(t, http.StatusOK, ask(t, g, http.MethodPut, claimsPath+"/c/status"))
	require.False(t, isClosed(trap.sprung))
	require.Equal(t, []string{"PUT " + claimsPath + "/c/status"}, api.seen())
}

func TestKindOf(t *testing.T) {
	for request, want := range map[string]write{
		"PUT " + claimsPath + "/c":                                    addFinalizer,
		"PUT " + claimsPath + "/c/status":                             allocate,
		"PATCH " + claimsPath + "/c/status":                           unreserve,
		"POST " + claimsPath:                                          createClaim,
		"DELETE " + claimsPath + "/c":                                 deleteClaim,
		"POST " + podsPath + "/a/binding":                             bind,
		"PATCH " + podsPath + "/a/status":                             setCondition,
		"GET " + podsPath:                                             notInteresting,
		"POST /apis/events.k8s.io/v1/namespaces/ns/events":            notInteresting,
		"PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/lease": notInteresting,
	} {
		method, path, _ := strings.Cut(request, " ")
		kind, name := kindOf(httptest.NewRequest(method, path, nil))
		require.Equal(t, want, kind, request)
		if want == unreserve {
			require.Equal(t, "c", name)
		}
	}
}
