// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// Serve starts a server that forwards to the API server at a URL, with the credentials that
// the transport adds. The caller closes it.
func (f *Faults) Serve(api *url.URL) *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(api) },
		Transport:     f,
		FlushInterval: -1,
		// The connection ends without an answer, as those do that are lost.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	})
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
