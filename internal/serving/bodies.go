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
	// MaxBody is the maximum size of a request body in bytes. A review of an update has two objects, each at most as large as
	// etcd stores, and some other fields.
	MaxBody = 4 << 20
	// smallBody is the maximum size of a small body. Small bodies use memory of their own, so that reviews of ordinary objects,
	// which are rarely larger, never wait for large bodies.
	smallBody = 64 << 10
	// smallBodies and largeBodies are the memory in bytes for small and for large bodies being handled, with the objects
	// decoded from them.
	smallBodies, largeBodies = 16 << 20, 16 << 20
	// objectBytes is the memory that is charged per object in a body. An empty object has two bytes, but takes some hundred
	// when decoded.
	objectBytes = 1 << 10
	// leastBody is the memory that is charged for a request before its body arrives.
	leastBody = 4 << 10
	// patience is the time that a request waits for free memory.
	patience = 2 * time.Second
)

// Bodies is an HTTP handler that bounds the total memory of request bodies.
type Bodies struct {
	handler      http.Handler
	small, large *Shares
}

// NewBodies returns a handler that reads the body of each request before it calls handler. It answers 503 if too much memory is
// in use, 413 if the body exceeds [MaxBody], and 408 if the body arrives too slowly. Every request ends within a minute.
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
		// The memory was given to another client, so stop reading the body.
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
	// Close the connection, so that the server does not wait for the unread part of the body.
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), status)
}

// takeDecoded adds the memory of the objects that a body decodes to, to the request's share.
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

// read reads the body and adds memory to the share as the body arrives. So a client that sends nothing uses only leastBody.
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
