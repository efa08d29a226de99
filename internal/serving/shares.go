// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"slices"
	"sync"
)

// Shares divides a limited resource of a server, connections or bytes, among its clients. It is safe for concurrent use.
type Shares struct {
	limit int

	mutex sync.Mutex
	used  int
	// clients maps an address to its client. The shares of a client are sorted by age, the oldest first.
	clients map[string]*client
	// returned is closed and replaced when a share is returned.
	returned chan struct{}
}

type client struct {
	used   int
	shares []*Share
}

// NewShares returns Shares with a limit for the total of all shares.
func NewShares(limit int) *Shares {
	return &Shares{limit: limit, clients: map[string]*client{}, returned: make(chan struct{})}
}

// Share is the part of a resource that one connection or request uses.
type Share struct {
	of     *Shares
	client string
	used   int
	// evict ends the use of the share. It is nil if the share must not be evicted.
	evict func()
	ended bool
}

// Join returns an empty share, which the caller must return. evict is called at most once, when another client gets the resources
// of the share, and never after the share was returned. evict must not block and must not use shares.
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

// Take adds an amount to the share. It waits until the context ends if the resource is in use and no share can be evicted. The
// error is the context's cause.
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

// Try adds an amount to the share, or returns false if that is impossible now.
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

// add adds an amount to the share. If the resource is in use, it evicts shares of clients that use at least as much as this
// client would then use. It returns false if that is not enough.
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

// oldestOfLargest returns the oldest evictable share of the client with the largest use. Clients below least don't count.
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

// Keep protects the share from eviction. It returns false if the share was evicted already.
func (s *Share) Keep() bool {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	s.evict = nil
	return !s.ended
}

// Return returns the share. It may be called again.
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
