// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults breaks what a program and the API server say to each other, in the ways
// in which networks and API servers break it:
//
//	f := faults.New(seed, transport)
//	proxy := env.Proxy(api, f)
//	f.Set(faults.Usual)      // from here on
//	f.Partition()            // nothing gets through,
//	f.Set(faults.None)       // and everything is well again
//	f.Counts()               // what was done
//
// What a program is told may be untrue only in that it does not know what has happened: an
// answer that says "conflict" or "too many requests" is given in place of the API server's,
// which has not seen the request. No watch misses what it does not say it has missed: one
// that was silent ends, and the next is told that its version is too old. An API server
// that lies is nothing a program could be expected to survive.
//
// Which request meets which fault is drawn from the seed, in the order in which requests
// come. That order is not the same the next time.
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

// Faults passes requests on, or does not. It is safe for concurrent use.
type Faults struct {
	next http.RoundTripper

	mu     sync.Mutex
	random *rand.Rand
	mix    Mix
	counts map[Kind]int
	// partitioned is closed when a partition begins, and made anew when it ends.
	partitioned chan struct{}
	cut         bool
	// tooOld are the paths whose next watch is told that its version is too old.
	tooOld sets.Set[string]
}

var errLost = errors.New("the connection was lost")

// New returns faults that pass everything on to next until they are told otherwise.
func New(seed uint64, next http.RoundTripper) *Faults {
	return &Faults{
		next: next, random: rand.New(rand.NewPCG(seed, 23)), mix: None, counts: map[Kind]int{},
		partitioned: make(chan struct{}), tooOld: sets.New[string](),
	}
}

// Set sets the mix from now on, and ends a partition.
func (f *Faults) Set(mix Mix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mix = mix
	if f.cut {
		f.cut, f.partitioned = false, make(chan struct{})
	}
}

// Partition lets nothing through until Set: requests and watches under way end, too.
func (f *Faults) Partition() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cut {
		f.cut = true
		close(f.partitioned)
	}
}

// Counts are how often each fault was met.
func (f *Faults) Counts() map[Kind]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// fault is what happens to a request.
type fault struct {
	kind Kind
	// part is a number from 0 to 1 for how long it takes, at which of several codes.
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

// RoundTrip passes a request on, unless a fault says otherwise.
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
		// The API server sees all of it, and has answered before anyone is told otherwise.
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

// answer is one in place of that of the API server.
func answer(r *http.Request, code int, reason, message string) *http.Response {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(code)
	_, _ = fmt.Fprintf(recorder, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d, "message": %q}`, reason, code, message+" (a fault of the test)")
	response := recorder.Result()
	response.Request = r
	return response
}

// Kind is a way in which a request fails.
type Kind string

// The faults that a request can meet. One meets at most one of them.
const (
	// Conflict answers a write with 409, in place of the API server.
	Conflict Kind = "conflict"
	// Throttled answers 429 with Retry-After.
	Throttled Kind = "throttled"
	// Failed answers 500, 502, 503 or 504.
	Failed Kind = "failed"
	// Delayed waits up to a second before the request goes on.
	Delayed Kind = "delayed"
	// RequestLost ends the connection, and the API server has seen nothing.
	RequestLost Kind = "request lost"
	// AnswerLost ends the connection after the API server has answered.
	AnswerLost Kind = "answer lost"
	// WatchEnded ends a watch after up to ten seconds.
	WatchEnded Kind = "watch ended"
	// WatchHeld keeps back what a watch tells, for up to three seconds.
	WatchHeld Kind = "watch held"
	// WatchSkipped loses what a watch tells for up to three seconds. Then it ends, and the
	// next watch of the same is too old.
	WatchSkipped Kind = "watch skipped"
	// WatchTooOld answers a watch with 410.
	WatchTooOld Kind = "watch too old"
	// Partitioned is what happens to all requests while nothing gets through.
	Partitioned Kind = "partitioned"
)

// Mix is how many of a thousand requests meet a fault. Those of writes are for writes, those
// of watches for watches, the others for all requests but watches.
type Mix map[Kind]int

// Kinds in the order in which a mix is drawn from.
var (
	ofWrites  = []Kind{Conflict, AnswerLost}
	ofAll     = []Kind{Throttled, Failed, Delayed, RequestLost}
	ofWatches = []Kind{WatchEnded, WatchHeld, WatchSkipped, WatchTooOld}
)

// None lets everything through.
var None = Mix{}

// Usual is some of everything, Storm so much of it that most of what takes several requests
// fails at first.
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

// draw is the kind that a number from 0 to 999 stands for, empty for none.
func (m Mix) draw(number int, kinds ...Kind) Kind {
	for _, kind := range kinds {
		if number -= m[kind]; number < 0 {
			return kind
		}
	}
	return ""
}

// How long watches go on at most, and how long they may be silent.
const (
	maxWatch   = 10 * time.Second
	maxSilence = 3 * time.Second
)

// watched is the body of a watch that ends early, or is silent for a while.
type watched struct {
	body io.ReadCloser
	// silent is closed when nothing is told for a while, loud when that ends.
	silent, loud chan struct{}
	done         chan struct{}
	close        func() error
}

// watch returns the body of a watch that has the fault, and that ends with a partition.
func (f *Faults) watch(drawn fault, path string, body io.ReadCloser) io.ReadCloser {
	w := &watched{body: body, silent: make(chan struct{}), loud: make(chan struct{}), done: make(chan struct{})}
	w.close = sync.OnceValue(func() error {
		close(w.done)
		return body.Close()
	})
	go w.interrupt(f, drawn, path)
	return w
}

// interrupt does to the watch what is to be done, at a time before maxWatch.
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
		close(w.silent)
		if !w.wait(time.Duration((1-drawn.part)*float64(maxSilence)), drawn.cut) {
			return
		}
		if drawn.kind == WatchHeld {
			close(w.loud)
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

// wait waits for a time, for ever if it is negative, and returns false if the watch has
// ended meanwhile. It ends with a partition.
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

// Read hands out what was told, later if it is held, never if the watch ends before.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	select {
	case <-w.silent:
		select {
		case <-w.loud:
		case <-w.done:
			return 0, io.ErrUnexpectedEOF
		}
	default:
	}
	return n, err
}

// Close ends the watch.
func (w *watched) Close() error { return w.close() }
