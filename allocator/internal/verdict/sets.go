// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"sync"

	"github.com/celset/celset/cel/memo"
)

// sets has the verdicts on sets of one kind.
type sets[K comparable] struct {
	mutex sync.Mutex
	store store[K]
	// waiting has a channel for each set that somebody waits for.
	waiting map[K]chan struct{}
}

// store is where entries are. If there is no room for one more, all are forgotten.
type store[K comparable] interface {
	// get returns 0 if there is none.
	get(set K) entry
	// put replaces an entry, also by 0.
	put(set K, e entry)
}

// entry is a verdict in one word: the cost, whether the set is satisfactory, and a 1. 0 is none.
type entry uint64

const (
	// open: somebody is finding out. It is no verdict, because none is kept that cost as much.
	open = ^entry(0)
	most = 1<<60 - 1
)

func entryOf(v Verdict) entry {
	e := entry(v.Cost<<2 | 1)
	if v.Satisfied {
		e |= 2
	}
	return e
}

func (e entry) verdict() Verdict { return Verdict{e&2 != 0, uint64(e >> 2)} }

func (s *sets[K]) find(ctx context.Context, set K, evaluate func() (Verdict, error)) (v Verdict, known bool, err error) {
	for {
		e, busy := s.begin(set)
		if e != 0 {
			return e.verdict(), true, nil
		}
		if busy == nil {
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return v, false, memo.ErrInterrupted
		}
	}
	result := entry(0)
	defer func() { s.end(set, result) }()
	v, err = evaluate()
	if err == nil && v.Cost <= most {
		result = entryOf(v)
	}
	return v, false, err
}

// begin returns what is known of a set. If nothing is, the caller is to find out, unless there is
// a channel: that is closed when somebody else who does is done.
func (s *sets[K]) begin(set K) (e entry, busy <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch e := s.store.get(set); e {
	case open:
	case 0:
		s.store.put(set, open)
		return 0, nil
	default:
		return e, nil
	}
	done := s.waiting[set]
	if done == nil {
		if s.waiting == nil {
			s.waiting = make(map[K]chan struct{})
		}
		done = make(chan struct{})
		s.waiting[set] = done
	}
	return 0, done
}

// end keeps the verdict if there is one, and lets those go on who wait for it.
func (s *sets[K]) end(set K, result entry) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.store.put(set, result)
	if done := s.waiting[set]; done != nil {
		close(done)
		delete(s.waiting, set)
	}
}
