// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/celset/celset/test/internal/env"
)

// A write is the verb and resource of a request, such as "create pods/binding".
type write string

// The writes of a scheduler. The names say what the scheduler does with them.
const (
	addFinalizer   write = "update resourceclaims"
	allocate       write = "update resourceclaims/status" // also reserves and deallocates claims
	bind           write = "create pods/binding"
	setCondition   write = "patch pods/status" // also writes the name of the claim for extended resources
	unreserve      write = "patch resourceclaims/status"
	createClaim    write = "create resourceclaims" // for extended resources
	deleteClaim    write = "delete resourceclaims" // for extended resources, if the pod could not be bound
	notInteresting write = ""
)

// A side says whether the scheduler stops before or after a write.
type side string

const (
	before side = "before" // the API server never gets the write
	after  side = "after"  // the API server applies the write, but the scheduler never gets the response
)

// A point is the moment before or after a write, when a gate stops a scheduler.
type point struct {
	write write
	side  side
}

// A gate is a proxy between one scheduler process and the API server. When the scheduler reaches a point, the gate holds this
// and all later writes. When the gate is closed, it rejects them. So the API server gets exactly the writes up to the point, as
// if the process had died there. A gate can also delay a single write, and forward all others.
type gate struct {
	server *httptest.Server
	api    http.RoundTripper

	mu           sync.Mutex
	armed        *trap
	failBindings bool
	// unreserved holds claims whose reservation the scheduler has removed because it could not bind the pod.
	unreserved sets.Set[string]
	closed     chan struct{}
}

// A trap is a point at which a gate stops or delays the scheduler.
type trap struct {
	point point
	left  int // number of writes of this kind until the scheduler is stopped
	// sprung is closed when the scheduler reaches the point.
	sprung chan struct{}
	done   bool
	// released is closed to let the delayed write proceed. It is nil if the write is never forwarded.
	released chan struct{}
}

// await waits until the scheduler reaches the point.
func (t *trap) await(test *testing.T) {
	test.Helper()
	select {
	case <-t.sprung:
	case <-time.After(env.Patience):
		require.FailNow(test, "the scheduler did not come so far", "%s %s: %d writes are missing", t.point.side, t.point.write, t.left)
	}
}

// release lets a delayed write proceed.
func (t *trap) release() { close(t.released) }

var errClosed = errors.New("the gate is closed")

// newGate returns a gate to the API server at the URL. It sends requests through the transport, which adds credentials.
func newGate(api *url.URL, transport http.RoundTripper) *gate {
	g := &gate{api: transport, unreserved: sets.New[string](), closed: make(chan struct{})}
	g.server = env.Proxy(api, g)
	return g
}

// arm makes the gate stop the scheduler at the n-th write of the point's kind from now. n must be at least 1.
func (g *gate) arm(p point, n int) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = &trap{point: p, left: n, sprung: make(chan struct{})}
	// The scheduler makes these writes only after a binding has failed, so let bindings fail.
	g.failBindings = p.write == unreserve || p.write == deleteClaim
	return g.armed
}

// delay makes the gate hold the n-th write of a kind from now, until the trap is released.
func (g *gate) delay(w write, n int) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = &trap{point: point{w, before}, left: n, sprung: make(chan struct{}), released: make(chan struct{})}
	return g.armed
}

// close rejects the writes that the gate holds, and waits until all requests have ended.
func (g *gate) close() {
	close(g.closed)
	g.server.CloseClientConnections()
	g.server.Close()
}

// RoundTrip forwards a request, or holds or rejects it.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	kind, name := kindOf(r)
	if kind == notInteresting {
		return g.api.RoundTrip(r)
	}
	hit, fail, err := g.pass(kind, name)
	switch {
	case err != nil:
		return nil, err
	case fail:
		return refusal(r), nil
	case hit != nil && hit.point.side == before:
		if err := g.stop(hit); err != nil {
			return nil, err
		}
		return g.api.RoundTrip(r)
	}
	// Forward the whole request even if the process dies meanwhile. Otherwise it would be uncertain whether the API server gets
	// the write.
	response, err := g.api.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if hit == nil || err != nil {
		return response, err
	}
	return nil, errors.Join(response.Body.Close(), g.stop(hit))
}

// pass returns no trap if the write may pass. If the write is the one at which the scheduler must stop, it returns the trap.
// fail is set if the write must be rejected. After the scheduler has been stopped, no write passes.
func (g *gate) pass(kind write, name string) (hit *trap, fail bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.armed; t != nil && t.done && t.released == nil || isClosed(g.closed) {
		g.mu.Unlock()
		<-g.closed
		g.mu.Lock()
		return nil, false, errClosed
	}
	if kind == unreserve {
		g.unreserved.Insert(name)
	}
	if t := g.armed; t != nil && t.point.write == kind {
		if t.left--; t.left == 0 {
			t.done = true
			return t, false, nil
		}
	}
	return nil, kind == bind && g.failBindings, nil
}

// stop closes t.sprung, and holds the scheduler's write.
func (g *gate) stop(t *trap) error {
	close(t.sprung)
	select {
	case <-t.released:
		return nil
	case <-g.closed:
		return errClosed
	}
}

// hasUnreserved reports whether the scheduler has removed a reservation from the claim.
func (g *gate) hasUnreserved(claim string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unreserved.Has(claim)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// kindOf returns the kind of a write and the name of its object. It returns "" for writes that don't change pods or claims.
func kindOf(r *http.Request) (kind write, name string) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || !sets.New("create", "update", "patch", "delete").Has(info.Verb) || !sets.New("pods", "resourceclaims").Has(info.Resource) {
		return notInteresting, ""
	}
	return write(strings.TrimSuffix(info.Verb+" "+info.Resource+"/"+info.Subresource, "/")), info.Name
}

// refusal returns the response to a binding that must fail.
func refusal(r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(http.StatusForbidden)
	_, _ = recorder.WriteString(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "refused by the test"}`)
	response := recorder.Result()
	response.Request = r
	return response
}
