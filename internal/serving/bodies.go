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
	// MaxBody is the maximum size of a request body in bytes: two objects of the largest size that etcd stores, and the rest of a
	// review.
	MaxBody = 4 << 20
	// smallBody is the maximum size of a small body. Small bodies have memory of their own, so that ordinary objects, which are
	// rarely larger, never wait for large bodies.
	smallBody = 64 << 10
	// smallBodies and largeBodies are the bytes for the bodies in progress and for the objects decoded from them.
	smallBodies, largeBodies = 16 << 20, 16 << 20
	// objectBytes is the memory charged per object in a body. An empty object has two bytes and takes some hundred when decoded.
	objectBytes = 1 << 10
	// leastBody is the memory charged for a request without a body.
	leastBody = 4 << 10
	// patience is the time that a request waits for free memory.
	patience = 2 * time.Second
)

// Bodies bounds the total memory of request bodies.
type Bodies struct {
	handler      http.Handler
	small, large *Shares
}

// NewBodies returns a handler that reads each body before it calls handler. It refuses a request with 503 if too much memory is
// in use, and with 413 if the body exceeds [MaxBody]. If the body is too slow, it refuses with 408. Every request ends within a
// minute.
func NewBodies(handler http.Handler) *Bodies {
	return &Bodies{handler: handler, small: NewShares(smallBodies), large: NewShares(largeBodies)}
}

var (
	errTooLarge = errors.New("the request is too large, or has too many objects")
	errTooMany  = errors.New("the current requests are too large together; try again later")
	errTooSlow  = errors.New("the request did not arrive in time")
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
		// Stop waiting for the rest of the body.
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
	// The server must not wait for the unread rest of the body.
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), status)
}

// takeDecoded takes memory for the objects that a body decodes to.
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

// read takes memory as the body arrives, so that a client that sends nothing takes leastBody only.
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
