// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults disturbs the communication of a program with the API server as real networks and API servers do:
//
//	f := faults.New(seed, transport)
//	proxy := env.Proxy(api, f)
//	f.Set(faults.Usual)      // from here on
//	f.Partition()            // nothing gets through,
//	f.Set(faults.None)       // and everything is well again
//	f.Counts()               // what was done
//
// Faults may lose requests, responses and events, but never give a program wrong data, because no program could handle that. A
// response "conflict" or "too many requests" means that the API server has not seen the request. If a watch loses events, it
// ends, and the next watch gets the error that its resource version is too old.
//
// The seed determines the fault for the n-th request. The order of the requests can differ between runs.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Faults is a transport that applies faults to requests. It is safe for concurrent use.
type Faults struct {
	next http.RoundTripper

	mu     sync.Mutex
	random *rand.Rand
	mix    Mix
	counts map[Kind]int
	// partitioned is closed when a partition begins. A new channel replaces it when the partition ends.
	partitioned chan struct{}
	cut         bool
	// tooOld holds paths. The next watch of such a path gets the error that its resource version is too old.
	tooOld sets.Set[string]
}

var errLost = errors.New("the connection was lost")

// New returns a transport that forwards all requests to next until Set or Partition is called.
func New(seed uint64, next http.RoundTripper) *Faults {
	return &Faults{
		next: next, random: rand.New(rand.NewPCG(seed, 23)), mix: None, counts: map[Kind]int{},
		partitioned: make(chan struct{}), tooOld: sets.New[string](),
	}
}

// Set sets the probabilities of faults for later requests, and ends a partition.
func (f *Faults) Set(mix Mix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mix = mix
	if f.cut {
		f.cut, f.partitioned = false, make(chan struct{})
	}
}

// Partition blocks all requests until Set is called. It also ends the current requests and watches.
func (f *Faults) Partition() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cut {
		f.cut = true
		close(f.partitioned)
	}
}

// Counts returns how often each fault occurred.
func (f *Faults) Counts() map[Kind]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// A fault is the fault that is applied to one request.
type fault struct {
	kind Kind
	// part is a random number from 0 to 1. It determines how long the fault lasts, or which status code it returns.
	part float64
	cut  <-chan struct{}
}

func (f *Faults) fault(info *request.RequestInfo, path string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	kinds := ofAll
	switch {
	case info.Verb == "watch":
		kinds = ofWatches
	case sets.New("update", "patch").Has(info.Verb):
		kinds = slices.Concat(ofWrites, ofAll)
	case sets.New("create", "delete").Has(info.Verb):
		kinds = append(slices.Clone(ofAll), AnswerLost)
	}
	drawn := fault{kind: f.mix.draw(f.random.IntN(1000), kinds...), part: f.random.Float64(), cut: f.partitioned}
	switch {
	case f.cut:
		drawn.kind = Partitioned
	case info.Verb == "watch" && f.tooOld.Has(path):
		f.tooOld.Delete(path)
		drawn.kind = WatchTooOld
	}
	if drawn.kind != "" {
		f.counts[drawn.kind]++
	}
	return drawn
}

var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// RoundTrip passes a request on or applies a fault.
func (f *Faults) RoundTrip(r *http.Request) (*http.Response, error) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return nil, err
	}
	drawn := f.fault(info, r.URL.Path)
	switch drawn.kind {
	case Partitioned, RequestLost:
		return nil, errLost
	case Conflict:
		return answer(r, http.StatusConflict, "Conflict", "the object has been modified; please apply your changes to the latest version and try again"), nil
	case Throttled:
		response := answer(r, http.StatusTooManyRequests, "TooManyRequests", "the server has received too many requests and has asked us to try again later")
		response.Header.Set("Retry-After", "1")
		return response, nil
	case Failed:
		codes := []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
		return answer(r, codes[int(drawn.part*float64(len(codes)))], "InternalError", "something went wrong"), nil
	case WatchTooOld:
		return answer(r, http.StatusGone, "Expired", "too old resource version"), nil
	case Delayed:
		select {
		case <-time.After(time.Duration(drawn.part * float64(time.Second))):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case AnswerLost:
		// Don't cancel the request when the program ends, because in this fault the API server must handle it. Only the
		// response is lost.
		response, err := f.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(errLost, response.Body.Close())
	}
	response, err := f.next.RoundTrip(r)
	if err == nil && info.Verb == "watch" {
		response.Body = f.watch(drawn, r.URL.Path, response.Body)
	}
	return response, err
}

// answer returns a response in place of the API server's response.
func answer(r *http.Request, code int, reason, message string) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(code)
	_, _ = fmt.Fprintf(recorder, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d, "message": %q}`, reason, code, message+" (a fault of the test)")
	response := recorder.Result()
	response.Request = r
	return response
}

// A Kind is a kind of fault.
type Kind string

// The kinds of faults. At most one is applied to a request.
const (
	// Conflict returns 409 for a write. The API server does not see the write.
	Conflict Kind = "conflict"
	// Throttled returns 429 with Retry-After. The API server does not see the request.
	Throttled Kind = "throttled"
	// Failed returns 500, 502, 503 or 504.
	Failed Kind = "failed"
	// Delayed delays the request by up to a second.
	Delayed Kind = "delayed"
	// RequestLost ends the connection before the API server sees the request.
	RequestLost Kind = "request lost"
	// AnswerLost ends the connection after the API server has handled the request.
	AnswerLost Kind = "answer lost"
	// WatchEnded ends a watch after up to ten seconds.
	WatchEnded Kind = "watch ended"
	// WatchHeld delays all events of a watch for up to three seconds.
	WatchHeld Kind = "watch held"
	// WatchSkipped drops all events of a watch for up to three seconds. Then the watch ends. The next watch of the same path
	// gets the error that its resource version is too old.
	WatchSkipped Kind = "watch skipped"
	// WatchTooOld returns 410 for a watch.
	WatchTooOld Kind = "watch too old"
	// Partitioned counts the requests during a partition.
	Partitioned Kind = "partitioned"
)

// A Mix maps a kind to the number of requests in a thousand that get this fault. Conflict and AnswerLost apply only to writes.
// Kinds that begin with Watch apply only to watches. All other kinds apply to all requests except watches.
type Mix map[Kind]int

// The order of the kinds determines the kind that a random number selects, so a change of the order changes the meaning of a
// seed.
var (
	ofWrites  = []Kind{Conflict, AnswerLost}
	ofAll     = []Kind{Throttled, Failed, Delayed, RequestLost}
	ofWatches = []Kind{WatchEnded, WatchHeld, WatchSkipped, WatchTooOld}
)

// None applies no faults.
var None = Mix{}

// Usual applies each kind of fault to a few requests. With Storm, most operations that need several requests fail at first.
var (
	Usual = Mix{
		Conflict: 20, AnswerLost: 20, Throttled: 10, Failed: 10, Delayed: 30, RequestLost: 10,
		WatchEnded: 200, WatchHeld: 200, WatchSkipped: 100, WatchTooOld: 50,
	}
	Storm = Mix{
		Conflict: 200, AnswerLost: 100, Throttled: 100, Failed: 50, Delayed: 100, RequestLost: 50,
		WatchEnded: 400, WatchHeld: 300, WatchSkipped: 100, WatchTooOld: 100,
	}
)

// draw returns the kind that a random number from 0 to 999 selects, or "" for no fault.
func (m Mix) draw(number int, kinds ...Kind) Kind {
	for _, kind := range kinds {
		if number -= m[kind]; number < 0 {
			return kind
		}
	}
	return ""
}

// The maximum duration of a watch, and the maximum delay of its events.
const (
	maxWatch   = 10 * time.Second
	maxSilence = 3 * time.Second
)

// watched is the response body of a watch that ends early or pauses.
type watched struct {
	body io.ReadCloser
	// paused is closed when the watch pauses. resumed is closed when it resumes.
	paused, resumed chan struct{}
	done            chan struct{}
	close           func() error
}

// watch returns the response body of a watch to which the fault is applied. The watch also ends when a partition begins.
func (f *Faults) watch(drawn fault, path string, body io.ReadCloser) io.ReadCloser {
	w := &watched{body: body, paused: make(chan struct{}), resumed: make(chan struct{}), done: make(chan struct{})}
	w.close = sync.OnceValue(func() error {
		close(w.done)
		return body.Close()
	})
	go w.interrupt(f, drawn, path)
	return w
}

// interrupt waits for a random time of at most maxWatch, and then applies the fault to the watch.
func (w *watched) interrupt(f *Faults, drawn fault, path string) {
	at := time.Duration(drawn.part * float64(maxWatch))
	switch drawn.kind {
	case WatchEnded:
		if w.wait(at, drawn.cut) {
			_ = w.close()
		}
	case WatchHeld, WatchSkipped:
		if !w.wait(at, drawn.cut) {
			return
		}
		close(w.paused)
		if !w.wait(time.Duration((1-drawn.part)*float64(maxSilence)), drawn.cut) {
			return
		}
		if drawn.kind == WatchHeld {
			close(w.resumed)
			w.wait(-1, drawn.cut)
			return
		}
		f.mu.Lock()
		f.tooOld.Insert(path)
		f.mu.Unlock()
		_ = w.close()
	default:
		w.wait(-1, drawn.cut)
	}
}

// wait waits for a duration, or forever if it is negative. It returns false if the watch ends or a partition begins in the
// meantime.
func (w *watched) wait(d time.Duration, cut <-chan struct{}) bool {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-w.done:
		return false
	case <-cut:
		_ = w.close()
		return false
	}
}

// Read returns events of the watch. During a pause it waits. If the watch ends during the pause, the events are lost.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	select {
	case <-w.paused:
		select {
		case <-w.resumed:
		case <-w.done:
			return 0, io.ErrUnexpectedEOF
		}
	default:
	}
	return n, err
}

// Close ends the watch.
func (w *watched) Close() error { return w.close() }
