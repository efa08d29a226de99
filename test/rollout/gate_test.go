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

// A write is a verb and a resource, such as "create pods/binding".
type write string

// The writes of a scheduler, by purpose.
const (
	addFinalizer   write = "update resourceclaims"
	allocate       write = "update resourceclaims/status" // also for reservation and deallocation
	bind           write = "create pods/binding"
	setCondition   write = "patch pods/status" // also for the name of the claim for extended resources
	unreserve      write = "patch resourceclaims/status"
	createClaim    write = "create resourceclaims" // for extended resources
	deleteClaim    write = "delete resourceclaims" // for extended resources, when the pod could not be bound
	notInteresting write = ""
)

// A side is a moment before or after a write.
type side string

const (
	before side = "before" // the API server does not see the write
	after  side = "after"  // the scheduler does not see the answer
)

// A point is where a scheduler is stopped.
type point struct {
	write write
	side  side
}

// A gate is a proxy between one scheduler process and the API server. Writes after the armed one wait until the gate is closed,
// and are then refused. So the API server sees exactly the writes before the death of the process. Alternatively the gate only
// delays one write, and lets all others pass.
type gate struct {
	server *httptest.Server
	api    http.RoundTripper

	mu           sync.Mutex
	armed        *trap
	failBindings bool
	// unreserved are the claims whose reservation was removed because the pod could not be bound.
	unreserved sets.Set[string]
	closed     chan struct{}
}

// A trap is a point at which a gate stops the scheduler.
type trap struct {
	point point
	left  int // writes until the trap springs
	// sprung is closed when the scheduler reaches the point.
	sprung chan struct{}
	done   bool
	// released is closed to let the write proceed. Nil: the write ends with the process.
	released chan struct{}
}

// await returns when the scheduler reaches the point.
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

// newGate returns a gate that forwards to the API server at the URL. The transport adds credentials.
func newGate(api *url.URL, transport http.RoundTripper) *gate {
	g := &gate{api: transport, unreserved: sets.New[string](), closed: make(chan struct{})}
	g.server = env.Proxy(api, g)
	return g
}

// arm makes the gate stop at the n-th write of a kind from now; n is at least 1.
func (g *gate) arm(p point, n int) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = &trap{point: p, left: n, sprung: make(chan struct{})}
	// These writes happen only after a failed binding.
	g.failBindings = p.write == unreserve || p.write == deleteClaim
	return g.armed
}

// delay makes the gate hold the n-th write of a kind from now until the trap releases it.
func (g *gate) delay(w write, n int) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = &trap{point: point{w, before}, left: n, sprung: make(chan struct{}), released: make(chan struct{})}
	return g.armed
}

// close refuses waiting writes, and returns when no request is left.
func (g *gate) close() {
	close(g.closed)
	g.server.CloseClientConnections()
	g.server.Close()
}

// RoundTrip forwards a request, if the gate lets it pass.
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
	// The API server receives the complete request even if the sender dies, so that the time of the write is certain.
	response, err := g.api.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if hit == nil || err != nil {
		return response, err
	}
	return nil, errors.Join(response.Body.Close(), g.stop(hit))
}

// pass lets a write pass, or returns the trap that the write springs, or reports that the write must fail. After the trap has
// sprung nothing passes.
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

// stop reports that the scheduler has reached the point, and holds it there.
func (g *gate) stop(t *trap) error {
	close(t.sprung)
	select {
	case <-t.released:
		return nil
	case <-g.closed:
		return errClosed
	}
}

// hasUnreserved reports whether the scheduler removed a pod from the claim.
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

// kindOf returns the kind of a write and the name of its object. It ignores writes that don't affect pods and claims.
func kindOf(r *http.Request) (kind write, name string) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || !sets.New("create", "update", "patch", "delete").Has(info.Verb) || !sets.New("pods", "resourceclaims").Has(info.Resource) {
		return notInteresting, ""
	}
	return write(strings.TrimSuffix(info.Verb+" "+info.Resource+"/"+info.Subresource, "/")), info.Name
}

// refusal returns the answer to a failing binding.
func refusal(r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(http.StatusForbidden)
	_, _ = recorder.WriteString(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "refused by the test"}`)
	response := recorder.Result()
	response.Request = r
	return response
}
