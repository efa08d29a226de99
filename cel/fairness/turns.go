// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairness gives tenants turns for expensive work. A turn is the permission to do one piece of work. A tenant that asks
// more often than others delays only itself.
//
//	turns := fairness.NewTurns(2, 8)
//	end, err := turns.Take(ctx, namespace)
//	if err != nil {
//		return err // the context ended, or too many of the namespace wait
//	}
//	defer end()
//
// A tenant is a namespace or a user. The context carries the tenant to the place where a turn is taken ([WithTenant]).
package fairness

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrTooMany is returned by [Turns.Take] if the maximum number of callers of the tenant already wait.
var ErrTooMany = errors.New("too many callers are waiting")

// Turns limits the number of concurrent callers. Tenants take turns, and at most one caller of each tenant works at a time. It is
// safe for concurrent use.
type Turns struct {
	maxWaiting int

	mutex sync.Mutex
	// free is the number of further callers that may work now.
	free int
	// running are the tenants with a working caller.
	running map[string]bool
	// waiting holds the callers of each tenant in the order of arrival. order holds the waiting tenants, beginning with the tenant
	// that has waited longest for a turn.
	waiting map[string][]chan struct{}
	order   []string
}

// NewTurns returns Turns that allow a number of concurrent callers, and a number of waiting callers per tenant. A maxWaiting of 0
// means no limit.
func NewTurns(concurrent, maxWaiting int) *Turns {
	return &Turns{maxWaiting: maxWaiting, free: concurrent, running: map[string]bool{}, waiting: map[string][]chan struct{}{}}
}

// Take waits for a turn of the tenant. The caller calls end when its work is done. The error is [ErrTooMany] or the cause of the
// context's end.
func (t *Turns) Take(ctx context.Context, tenant string) (end func(), err error) {
	turn, err := t.join(tenant)
	if err != nil {
		return nil, err
	}
	select {
	case <-turn:
	case <-ctx.Done():
	}
	// The context may have ended at the same moment as the turn came.
	if ctx.Err() != nil {
		t.leave(tenant, turn)
		return nil, context.Cause(ctx)
	}
	return func() { t.end(tenant) }, nil
}

// join adds a caller, and returns a channel that is closed when its turn comes.
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

// leave removes a waiting caller. If the caller got its turn at the same moment, leave frees the turn for others.
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

// next gives the free turns to waiting callers.
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
		// The tenant moves to the end, so that other tenants come before its other callers.
		t.order = append(slices.Delete(t.order, at, at+1), tenant)
		t.remove(tenant, 0)
	}
}

// remove removes one waiting caller.
func (t *Turns) remove(tenant string, at int) {
	if len(t.waiting[tenant]) > 1 {
		t.waiting[tenant] = slices.Delete(t.waiting[tenant], at, at+1)
		return
	}
	delete(t.waiting, tenant)
	t.order = slices.DeleteFunc(t.order, func(one string) bool { return one == tenant })
}

type tenantKey struct{}

// WithTenant returns a context for work of the tenant.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// TenantIn returns the tenant of the context, or "".
func TenantIn(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}
