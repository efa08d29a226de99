// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"slices"
	"sync"
)

// Shares divides a limited resource of a server (connections or bytes) among its clients. It is safe for concurrent use.
type Shares struct {
	limit int

	mutex sync.Mutex
	used  int
	// clients maps an address to the client with this address. The shares of a client are sorted by age, the oldest first.
	clients map[string]*client
	// returned is closed when a share is returned, and then replaced by a new channel.
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

// Share is the amount of the resource that one connection or request uses.
type Share struct {
	of     *Shares
	client string
	used   int
	// evict ends the connection or request that uses the share. It is nil if the share must not be evicted.
	evict func()
	ended bool
}

// Join returns an empty share for the client with the name. The caller must return the share. If another client gets the
// resources of the share, Shares calls evict, at most once and never after the share was returned. evict must not block and
// must not use shares.
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

// Take adds an amount to the share. If the resource is in use and no share can be evicted, it waits until ctx ends. The error
// is the cause of ctx.
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

// Try adds an amount to the share without waiting. It returns false if this is not possible now.
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

// add adds an amount to the share. If the resource is in use, it evicts shares of other clients, but only of clients that use
// at least as much as this client would use afterwards. It returns false if evicting is not enough.
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

// oldestOfLargest returns the oldest share that can be evicted, of the client that uses most. It returns nil if no client uses
// at least the amount least.
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

// Keep protects the share from eviction. It returns false if the share has already been evicted.
func (s *Share) Keep() bool {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	s.evict = nil
	return !s.ended
}

// Return returns the amount of the share. Further calls do nothing.
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
