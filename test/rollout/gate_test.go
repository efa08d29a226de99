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

// write is a verb and a resource, such as "create pods/binding".
type write string

// The writes of a scheduler, by what they are for.
const (
	addFinalizer   write = "update resourceclaims"
	allocate       write = "update resourceclaims/status" // also to reserve, and to deallocate
	bind           write = "create pods/binding"
	setCondition   write = "patch pods/status" // also to name the claim for extended resources
	unreserve      write = "patch resourceclaims/status"
	createClaim    write = "create resourceclaims" // for extended resources
	deleteClaim    write = "delete resourceclaims" // the same, when the pod could not be bound
	notInteresting write = ""
)

// side of a write.
type side string

const (
	before side = "before" // the API server does not see it
	after  side = "after"  // the scheduler does not see the answer
)

// point is where a scheduler is stopped.
type point struct {
	write write
	side  side
}

// gate stands between one scheduler process and the API server. Writes after the one
// that it is armed for wait until the gate is closed, and are then refused: what
// reached the API server is what it was when the process died. Or the gate only delays
// one write, and lets the others pass.
type gate struct {
	server *httptest.Server
	api    http.RoundTripper

	mu           sync.Mutex
	armed        *trap
	failBindings bool
	// unreserved are the claims from which a pod that could not be bound was taken.
	unreserved sets.Set[string]
	closed     chan struct{}
}

// trap is a point at which a gate stops the scheduler.
type trap struct {
	point point
	left  int // writes until it springs
	// sprung is closed when the scheduler is at the point.
	sprung chan struct{}
	done   bool
	// released is closed to let the write go on. Nil: it ends with the process.
	released chan struct{}
}

// await returns when the scheduler is at the point.
func (t *trap) await(test *testing.T) {
	test.Helper()
	select {
	case <-t.sprung:
	case <-time.After(env.Patience):
		require.FailNow(test, "the scheduler did not come so far", "%s %s: %d writes are missing", t.point.side, t.point.write, t.left)
	}
}

// release lets a write go on that was delayed.
func (t *trap) release() { close(t.released) }

var errClosed = errors.New("the gate is closed")

// newGate forwards to the API server at the URL, with the credentials that the
// transport adds.
func newGate(api *url.URL, transport http.RoundTripper) *gate {
	g := &gate{api: transport, unreserved: sets.New[string](), closed: make(chan struct{})}
	g.server = env.Proxy(api, g)
	return g
}

// arm has the gate stop at the n-th write of a kind from now, n being 1 or more.
func (g *gate) arm(p point, n int) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = &trap{point: p, left: n, sprung: make(chan struct{})}
	// These happen only when something has gone wrong.
	g.failBindings = p.write == unreserve || p.write == deleteClaim
	return g.armed
}

// delay has the gate hold the n-th write of a kind from now until the trap releases it.
func (g *gate) delay(w write, n int) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = &trap{point: point{w, before}, left: n, sprung: make(chan struct{}), released: make(chan struct{})}
	return g.armed
}

// close refuses what waits, and returns when no request is left.
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
	// The API server gets all of what it was sent, whatever happens to the sender:
	// so it is known when the write has happened.
	response, err := g.api.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if hit == nil || err != nil {
		return response, err
	}
	return nil, errors.Join(response.Body.Close(), g.stop(hit))
}

// pass lets a write pass, tells that it is the one that the gate is armed for, or
// that it has to fail. Once the trap has sprung it lets nothing pass.
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

// stop tells that the scheduler is at the point, and holds it there.
func (g *gate) stop(t *trap) error {
	close(t.sprung)
	select {
	case <-t.released:
		return nil
	case <-g.closed:
		return errClosed
	}
}

// hasUnreserved tells whether the scheduler took a pod from the claim of that name.
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

// kindOf returns also the name of the object that is written. It leaves out what does
// not matter to pods and claims.
func kindOf(r *http.Request) (kind write, name string) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || !sets.New("create", "update", "patch", "delete").Has(info.Verb) || !sets.New("pods", "resourceclaims").Has(info.Resource) {
		return notInteresting, ""
	}
	return write(strings.TrimSuffix(info.Verb+" "+info.Resource+"/"+info.Subresource, "/")), info.Name
}

// refusal is the answer to a binding that fails.
func refusal(r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(http.StatusForbidden)
	_, _ = recorder.WriteString(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "refused by the test"}`)
	response := recorder.Result()
	response.Request = r
	return response
}
