// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"errors"
	"slices"
	"sync"
)

const (
	// concurrent is how many Placements are decided at a time. Nothing is remembered
	// from one to the next, so each takes as long as the first decision does, and the
	// controller needs the processors, too.
	concurrent = 2
	// maxWaiting is how many of one namespace may wait.
	maxWaiting = 8
)

// errTooMany says that there is no room to wait.
var errTooMany = errors.New("too many wait")

// turns lets few be decided at a time. Namespaces have their turns one after another,
// and at most one Placement of each is decided: whoever may ask about one namespace, as
// whatever user, leaves room to those who ask about another.
type turns struct {
	mutex sync.Mutex
	// free is how many more may be decided.
	free int
	// running are the namespaces that have one.
	running map[string]bool
	// waiting are those who wait, in the order in which they came; order are their
	// namespaces, the one that waits longest for its turn first.
	waiting map[string][]chan struct{}
	order   []string
}

func newTurns() *turns {
	return &turns{free: concurrent, running: map[string]bool{}, waiting: map[string][]chan struct{}{}}
}

// take waits for a turn of a namespace. Unless there is an error, end ends it.
func (t *turns) take(ctx context.Context, namespace string) (end func(), err error) {
	turn, err := t.join(namespace)
	if err != nil {
		return nil, err
	}
	select {
	case <-turn:
	case <-ctx.Done():
	}
	// Nobody waits for an answer that begins when time is over.
	if ctx.Err() != nil {
		t.leave(namespace, turn)
		return nil, context.Cause(ctx)
	}
	return func() { t.end(namespace) }, nil
}

// join returns a channel that is closed when it is the turn of who joins.
func (t *turns) join(namespace string) (chan struct{}, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.waiting[namespace]) >= maxWaiting {
		return nil, errTooMany
	}
	if len(t.waiting[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	turn := make(chan struct{})
	t.waiting[namespace] = append(t.waiting[namespace], turn)
	t.next()
	return turn, nil
}

// leave gives up to wait, or the turn that came at the same moment.
func (t *turns) leave(namespace string, turn chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if at := slices.Index(t.waiting[namespace], turn); at >= 0 {
		t.remove(namespace, at)
		return
	}
	t.release(namespace)
}

func (t *turns) end(namespace string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.release(namespace)
}

func (t *turns) release(namespace string) {
	t.free++
	delete(t.running, namespace)
	t.next()
}

// next gives turns to those whose they are.
func (t *turns) next() {
	for t.free > 0 {
		at := slices.IndexFunc(t.order, func(namespace string) bool { return !t.running[namespace] })
		if at < 0 {
			return
		}
		namespace := t.order[at]
		close(t.waiting[namespace][0])
		t.free--
		t.running[namespace] = true
		// Who waits on comes after the others.
		t.order = append(slices.Delete(t.order, at, at+1), namespace)
		t.remove(namespace, 0)
	}
}

// remove takes one of those who wait away.
func (t *turns) remove(namespace string, at int) {
	if len(t.waiting[namespace]) > 1 {
		t.waiting[namespace] = slices.Delete(t.waiting[namespace], at, at+1)
		return
	}
	delete(t.waiting, namespace)
	t.order = slices.DeleteFunc(t.order, func(one string) bool { return one == namespace })
}
