// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/internal/testing/env"
)

// crossing stands between a scheduler and the API server. It can stop the writes by which pods are evicted.
type crossing struct {
	server *httptest.Server
	api    http.RoundTripper
	closed chan struct{}

	// mutex guards the barrier.
	mutex   sync.Mutex
	barrier *barrier
}

// barrier stops requests of a kind.
type barrier struct {
	stops func(write) bool
	// pass is the number of requests that the barrier still lets through.
	pass int
	// reached is closed when a request is stopped, released when all may go on.
	reached, released chan struct{}
	isReached         bool
}

// write is a request of a scheduler that changes pods.
type write struct {
	verb, subresource, body string
}

// isDeletion reports whether the write deletes a pod.
func isDeletion(w write) bool { return w.verb == "delete" && w.subresource == "" }

// isEviction reports whether the write is one of those that evict a pod, or that note for whom.
func isEviction(w write) bool {
	return isDeletion(w) || w.verb == "patch" && w.subresource == "status" &&
		(strings.Contains(w.body, "DisruptionTarget") || strings.Contains(w.body, `"type":"celset.dev/`))
}

var errClosed = errors.New("the scheduler was killed")

// newCrossing lets everything through.
func newCrossing(t testing.TB, config *rest.Config) *crossing {
	t.Helper()
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	api, err := url.Parse(config.Host)
	require.NoError(t, err)
	c := &crossing{api: transport, closed: make(chan struct{})}
	c.server = env.Proxy(api, c)
	return c
}

// stop has the crossing let n writes of a kind through, and no more until the barrier is released.
func (c *crossing) stop(n int, stops func(write) bool) *barrier {
	b := &barrier{stops: stops, pass: n, reached: make(chan struct{}), released: make(chan struct{})}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.barrier = b
	return b
}

// release lets all writes go on.
func (b *barrier) release() { close(b.released) }

// close refuses the writes that were stopped. The API server never sees them.
func (c *crossing) close() {
	close(c.closed)
	c.server.CloseClientConnections()
	c.server.Close()
}

// RoundTrip implements [http.RoundTripper].
func (c *crossing) RoundTrip(r *http.Request) (*http.Response, error) {
	w, is, err := podWrite(r)
	if err != nil {
		return nil, err
	}
	if !is {
		return c.api.RoundTrip(r)
	}
	if b := c.stopping(w); b != nil {
		select {
		case <-b.released:
		case <-c.closed:
			return nil, errClosed
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return c.api.RoundTrip(r)
}

// stopping returns the barrier that stops a write, nil if it may pass.
func (c *crossing) stopping(w write) *barrier {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	b := c.barrier
	if b == nil || !b.stops(w) {
		return nil
	}
	if b.pass--; b.pass >= 0 {
		return nil
	}
	if !b.isReached {
		b.isReached = true
		close(b.reached)
	}
	return b
}

var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// podWrite reads a request that changes pods, and leaves its body to be sent.
func podWrite(r *http.Request) (w write, is bool, err error) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || info.Resource != "pods" || info.Verb != "patch" && info.Verb != "delete" {
		return write{}, false, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return write{}, false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return write{info.Verb, info.Subresource, string(body)}, true, nil
}
