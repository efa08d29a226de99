// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crossing is a proxy between a scheduler and the API server. It can stop the writes that evict pods and allocate claims.
//
//	c, err := crossing.New(config)
//	... start a scheduler with a kubeconfig for c.URL() ...
//	b := c.Stop(2, crossing.IsDeletion)
//	<-b.Reached() // two pods are evicted, and the third eviction is stopped
//	scheduler.Kill()
//	c.Close()
package crossing

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/internal/env"
)

// A Crossing is a proxy between one scheduler process and the API server. It can stop or reject writes.
type Crossing struct {
	server *httptest.Server
	api    http.RoundTripper
	once   sync.Once
	closed chan struct{}

	// mutex guards the barrier.
	mutex   sync.Mutex
	barrier *Barrier
}

// A Barrier stops or rejects some of a scheduler's writes.
type Barrier struct {
	stops func(Write) bool
	// refuses is set if the barrier rejects writes. Otherwise it stops them.
	refuses bool
	// pass is the number of matching writes that the barrier still lets through.
	pass int
	// reached is closed when the barrier stops or rejects the first write. released is closed when all writes may proceed.
	reached, released chan struct{}
	isReached         bool
}

// A Write is a request that changes a pod or a claim.
type Write struct {
	resource, verb, subresource, body string
}

func (w *Write) isPodStatus() bool {
	return w.resource == "pods" && w.verb == "patch" && w.subresource == "status"
}

// IsDeletion reports whether the write deletes a pod.
func IsDeletion(w Write) bool {
	return w.resource == "pods" && w.verb == "delete" && w.subresource == ""
}

// IsEviction reports whether the write evicts a pod, or records the preemptor in the victim's status.
func IsEviction(w Write) bool {
	return IsDeletion(w) || w.isPodStatus() &&
		(strings.Contains(w.body, "DisruptionTarget") || strings.Contains(w.body, `"type":"celset.dev/`))
}

var errClosed = errors.New("the scheduler was killed")

// New returns a crossing that forwards all requests.
func New(config *rest.Config) (*Crossing, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	api, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	c := &Crossing{api: transport, closed: make(chan struct{})}
	c.server = env.Proxy(api, c)
	return c, nil
}

// URL returns the address of the crossing. A scheduler needs no credentials to use it.
func (c *Crossing) URL() string { return c.server.URL }

// Stop returns a barrier for all writes w with stops(w) = true. It lets the first n of them through, and holds all later ones
// until it is released.
func (c *Crossing) Stop(n int, stops func(Write) bool) *Barrier {
	return c.raise(&Barrier{stops: stops, pass: n})
}

// Refuse returns a barrier for all writes w with stops(w) = true. It lets the first n of them through, and rejects all later
// ones, like an admission webhook, until it is released.
func (c *Crossing) Refuse(n int, stops func(Write) bool) *Barrier {
	return c.raise(&Barrier{stops: stops, pass: n, refuses: true})
}

func (c *Crossing) raise(b *Barrier) *Barrier {
	b.reached, b.released = make(chan struct{}), make(chan struct{})
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.barrier = b
	return b
}

// Reached returns a channel that is closed when the barrier stops or rejects the first write.
func (b *Barrier) Reached() <-chan struct{} { return b.reached }

// Release lets all stopped and later writes proceed.
func (b *Barrier) Release() { close(b.released) }

func (b *Barrier) isReleased() bool {
	select {
	case <-b.released:
		return true
	default:
		return false
	}
}

// refusal returns the response to a rejected write.
func refusal(r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(http.StatusForbidden)
	_, _ = recorder.WriteString(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "refused by the test"}`)
	response := recorder.Result()
	response.Request = r
	return response
}

// Close rejects the stopped writes, so that they never reach the API server. A second call does nothing.
func (c *Crossing) Close() {
	c.once.Do(func() {
		close(c.closed)
		c.server.CloseClientConnections()
		c.server.Close()
	})
}

// RoundTrip implements [http.RoundTripper].
func (c *Crossing) RoundTrip(r *http.Request) (*http.Response, error) {
	w, is, err := writeOf(r)
	if err != nil {
		return nil, err
	}
	if !is {
		return c.api.RoundTrip(r)
	}
	if b := c.stopping(w); b != nil {
		if b.refuses && !b.isReleased() {
			return refusal(r), nil
		}
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

// stopping returns the barrier that stops or rejects a write, or nil if the write may pass.
func (c *Crossing) stopping(w Write) *Barrier {
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

func changes(info *request.RequestInfo) bool {
	return info.Verb == "patch" || info.Verb == "delete" || info.Verb == "update" || info.Verb == "create" && info.Subresource == "binding"
}

// writeOf returns the write that a request makes. is is false if the request does not change pods or claims. The body can be
// read again afterwards.
func writeOf(r *http.Request) (w Write, is bool, err error) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || info.Resource != "pods" && info.Resource != "resourceclaims" || !changes(info) {
		return Write{}, false, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Write{}, false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return Write{info.Resource, info.Verb, info.Subresource, string(body)}, true, nil
}

// IsRelease reports whether the write records that the scheduler no longer holds devices for a pod.
func IsRelease(w Write) bool {
	return w.isPodStatus() && strings.Contains(w.body, `"type":"celset.dev/`) && strings.Contains(w.body, `"status":"False"`)
}

// IsDisruption reports whether the write records that a pod will be evicted.
func IsDisruption(w Write) bool {
	return w.isPodStatus() && strings.Contains(w.body, "DisruptionTarget")
}

// IsReservation reports whether the write allocates or reserves a claim.
func IsReservation(w Write) bool {
	return w.resource == "resourceclaims" && w.verb == "update" && w.subresource == "status"
}

// IsBinding reports whether the write binds a pod to a node.
func IsBinding(w Write) bool {
	return w.resource == "pods" && w.verb == "create" && w.subresource == "binding"
}
