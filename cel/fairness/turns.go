// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairness has tenants take turns at what takes time: a tenant that asks more often than
// others delays itself.
//
//	turns := fairness.NewTurns(2, 8)
//	end, err := turns.Take(ctx, namespace)
//	if err != nil {
//		return err // the context ended, or too many of the namespace wait
//	}
//	defer end()
//
// A tenant is a namespace or a user, and travels in the context to where a turn is taken
// ([WithTenant]).
package fairness

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrTooMany is returned by [Turns.Take] if as many callers of the tenant wait as may.
var ErrTooMany = errors.New("too many wait")

// Turns limits how many callers work at a time. Tenants have their turns one after another, and at
// most one caller of each works. It is safe for concurrent use.
type Turns struct {
	maxWaiting int

	mutex sync.Mutex
	// free is how many more callers may work.
	free int
	// running are the tenants with a caller that works.
	running map[string]bool
	// waiting has the callers of each tenant in the order in which they came; order has the tenants,
	// the one that waits longest for its turn first.
	waiting map[string][]chan struct{}
	order   []string
}

// NewTurns lets so many callers work at a time, and so many of each tenant wait; 0 is any number.
func NewTurns(concurrent, maxWaiting int) *Turns {
	return &Turns{maxWaiting: maxWaiting, free: concurrent, running: map[string]bool{}, waiting: map[string][]chan struct{}{}}
}

// Take waits for a turn of the tenant. The caller calls end when its work is done. The error is
// [ErrTooMany] or the cause of the context's end.
func (t *Turns) Take(ctx context.Context, tenant string) (end func(), err error) {
	turn, err := t.join(tenant)
	if err != nil {
		return nil, err
	}
	select {
	case <-turn:
	case <-ctx.Done():
	}
	// A turn that comes when the time is over is of no use.
	if ctx.Err() != nil {
		t.leave(tenant, turn)
		return nil, context.Cause(ctx)
	}
	return func() { t.end(tenant) }, nil
}

// join returns a channel that is closed when the turn comes.
func (t *Turns) join(tenant string) (chan struct{}, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.maxWaiting > 0 && len(t.waiting[tenant]) >= t.maxWaiting {
		return nil, ErrTooMany
	}
	if len(t.waiting[tenant]) == 0 {
		t.order = append(t.order, tenant)
	}
	turn := make(chan struct{})
	t.waiting[tenant] = append(t.waiting[tenant], turn)
	t.next()
	return turn, nil
}

// leave gives up waiting, or the turn that came at the same moment.
func (t *Turns) leave(tenant string, turn chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if at := slices.Index(t.waiting[tenant], turn); at >= 0 {
		t.remove(tenant, at)
		return
	}
	t.release(tenant)
}

func (t *Turns) end(tenant string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.release(tenant)
}

func (t *Turns) release(tenant string) {
	t.free++
	delete(t.running, tenant)
	t.next()
}

// next gives the turns that are free.
func (t *Turns) next() {
	for t.free > 0 {
		at := slices.IndexFunc(t.order, func(tenant string) bool { return !t.running[tenant] })
		if at < 0 {
			return
		}
		tenant := t.order[at]
		close(t.waiting[tenant][0])
		t.free--
		t.running[tenant] = true
		// Its other callers come after those of other tenants.
		t.order = append(slices.Delete(t.order, at, at+1), tenant)
		t.remove(tenant, 0)
	}
}

// remove takes one caller out of those that wait.
func (t *Turns) remove(tenant string, at int) {
	if len(t.waiting[tenant]) > 1 {
		t.waiting[tenant] = slices.Delete(t.waiting[tenant], at, at+1)
		return
	}
	delete(t.waiting, tenant)
	t.order = slices.DeleteFunc(t.order, func(one string) bool { return one == tenant })
}

type tenantKey struct{}

// WithTenant returns a context in which work is done for the tenant.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// TenantIn returns the tenant that work is done for, "" if the context says nothing of it.
func TenantIn(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}
