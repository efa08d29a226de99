// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"slices"
	"sync"
)

// Shares are what the clients of a server have of something that is limited: connections, or bytes. It
// is safe for concurrent use.
type Shares struct {
	limit int

	mutex sync.Mutex
	used  int
	// clients have the shares of each, the oldest first.
	clients map[string]*client
	// returned is closed when something was returned.
	returned chan struct{}
}

type client struct {
	used   int
	shares []*Share
}

// NewShares limits what all shares have together.
func NewShares(limit int) *Shares {
	return &Shares{limit: limit, clients: map[string]*client{}, returned: make(chan struct{})}
}

// Share is what one connection or request of a client has.
type Share struct {
	of     *Shares
	client string
	used   int
	// evict ends the use of the share; nil if that can't be.
	evict func()
	ended bool
}

// Join returns a share with nothing in it. evict is called at most once, when what the share has is
// given to another client, and never after the share was returned; it must not wait, or use shares. The
// caller returns the share at the end.
func (s *Shares) Join(name string, evict func()) *Share {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	of, known := s.clients[name]
	if !known {
		of = &client{}
		s.clients[name] = of
	}
	share := &Share{of: s, client: name, evict: evict}
	of.shares = append(of.shares, share)
	return share
}

// Take adds to the share. It waits until the context ends if others have too much and can't be
// evicted; the error is the cause of that end.
func (s *Share) Take(ctx context.Context, amount int) error {
	for {
		returned, ok := s.try(amount)
		if ok {
			return nil
		}
		select {
		case <-returned:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Try adds to the share, or says that it can't be now.
func (s *Share) Try(amount int) bool {
	_, ok := s.try(amount)
	return ok
}

func (s *Share) try(amount int) (returned <-chan struct{}, ok bool) {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	ok = s.of.add(s, amount)
	return s.of.returned, ok
}

// add evicts shares of the clients that have more than this one would have.
func (s *Shares) add(share *Share, amount int) bool {
	if share.ended || amount > s.limit {
		return false
	}
	own := s.clients[share.client]
	for s.used+amount > s.limit {
		oldest := s.oldestOfLargest(own.used + amount)
		if oldest == nil {
			return false
		}
		s.end(oldest)
		oldest.evict()
	}
	s.used += amount
	own.used += amount
	share.used += amount
	return true
}

// oldestOfLargest is the oldest share that can be evicted, of the client with the most of those with at least so much.
func (s *Shares) oldestOfLargest(least int) *Share {
	var found *Share
	for _, client := range s.clients {
		if client.used < least {
			continue
		}
		at := slices.IndexFunc(client.shares, func(share *Share) bool { return share.evict != nil && share.used > 0 })
		if at >= 0 {
			found, least = client.shares[at], client.used+1
		}
	}
	return found
}

// Keep has the share not be evicted any more. It is false if it was.
func (s *Share) Keep() bool {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	s.evict = nil
	return !s.ended
}

// Return gives all of the share back. It may be called again.
func (s *Share) Return() {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	if !s.ended {
		s.of.end(s)
	}
}

func (s *Shares) end(share *Share) {
	share.ended = true
	of := s.clients[share.client]
	of.shares = slices.DeleteFunc(of.shares, func(other *Share) bool { return other == share })
	if len(of.shares) == 0 {
		delete(s.clients, share.client)
	}
	of.used -= share.used
	s.used -= share.used
	close(s.returned)
	s.returned = make(chan struct{})
}
