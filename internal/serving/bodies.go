// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// MaxBody is how many bytes a body may have: two objects of the size that etcd takes, and what a
	// review has besides.
	MaxBody = 4 << 20
	// smallBody is up to where bodies have their own share of memory. Objects of a user are rarely as
	// large, and are not to wait for larger ones.
	smallBody = 64 << 10
	// These are the bytes of bodies that are read or worked on together, and of what is decoded from them.
	smallBodies, largeBodies = 16 << 20, 16 << 20
	// objectBytes is for each object in a body: an empty one, of two bytes, is decoded to some hundred.
	objectBytes = 1 << 10
	// leastBody is what a request without a body counts for.
	leastBody = 4 << 10
	// patience is how long a request waits for memory to become free.
	patience = 2 * time.Second
)

// Bodies bounds what the bodies of requests take in memory together.
type Bodies struct {
	handler      http.Handler
	small, large *Shares
}

// NewBodies has the handler find bodies that were read before. Requests that would be too much are
// refused with 503, larger ones than [MaxBody] with 413, and too slow ones with 408. All have ended
// within a minute.
func NewBodies(handler http.Handler) *Bodies {
	return &Bodies{handler: handler, small: NewShares(smallBodies), large: NewShares(largeBodies)}
}

var (
	errTooLarge = errors.New("the request is too large, or has too many objects")
	errTooMany  = errors.New("the requests at the moment are too large together; try again")
	errTooSlow  = errors.New("the request did not come in time")
)

// ServeHTTP implements [http.Handler].
func (b *Bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	shares := b.small
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		shares = b.large
	}
	share := shares.Join(hostOf(r.RemoteAddr), func() {
		// A body that is waited for is not waited for any more.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		cancel()
	})
	defer share.Return()
	body, err := read(ctx, share, r)
	if !share.Keep() {
		err = errTooMany
	}
	if err == nil {
		err = takeDecoded(ctx, share, body)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.handler.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusRequestTimeout
	switch {
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, errTooMany):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	// What was not read is not waited for.
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), status)
}

// takeDecoded takes memory for what a body is decoded to.
func takeDecoded(ctx context.Context, share *Share, body []byte) error {
	decoded := objectBytes * bytes.Count(body, []byte("{"))
	if decoded > smallBodies {
		return errTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if share.Take(ctx, decoded) != nil {
		return errTooMany
	}
	return nil
}

// read takes memory as the body comes: a client that sends nothing has none.
func read(ctx context.Context, share *Share, r *http.Request) ([]byte, error) {
	if r.ContentLength > MaxBody {
		return nil, errTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var body []byte
	for {
		if len(body) == cap(body) {
			more := min(max(leastBody, cap(body)), MaxBody+1-cap(body))
			if more == 0 {
				return nil, errTooLarge
			}
			if share.Take(ctx, more) != nil {
				return nil, errTooMany
			}
			larger := make([]byte, len(body), cap(body)+more)
			copy(larger, body)
			body = larger
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, errTooSlow
		}
	}
}
