// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairness gives tenants turns for expensive work. A turn is the permission to do one piece of work. So a tenant with
// many requests delays only itself.
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

// ErrTooMany is the error of [Turns.Take] if the maximum number of the tenant's callers already waits.
var ErrTooMany = errors.New("too many callers are waiting")

// Turns limits the number of callers that work at the same time. Tenants take turns, and at most one caller of each tenant
// works at a time. Turns is safe for concurrent use.
type Turns struct {
	maxWaiting int

	mutex sync.Mutex
	// free is the number of callers that may start to work now.
	free int
	// running has the tenants with a caller that works.
	running map[string]bool
	// waiting has the callers of each tenant in the order of arrival. order has the tenants with waiting callers. The tenant
	// that has waited longest for a turn is first.
	waiting map[string][]chan struct{}
	order   []string
}

// NewTurns returns Turns that allow concurrent callers at the same time, and maxWaiting waiting callers per tenant. A
// maxWaiting of 0 means no limit.
func NewTurns(concurrent, maxWaiting int) *Turns {
	return &Turns{maxWaiting: maxWaiting, free: concurrent, running: map[string]bool{}, waiting: map[string][]chan struct{}{}}
}

// Take waits for a turn of the tenant. The caller must call end when its work is done. The error is [ErrTooMany], or the cause
// of ctx if ctx has ended.
func (t *Turns) Take(ctx context.Context, tenant string) (end func(), err error) {
	turn, err := t.join(tenant)
	if err != nil {
		return nil, err
	}
	select {
	case <-turn:
	case <-ctx.Done():
	}
	// The turn may come at the same moment as the context ends.
	if ctx.Err() != nil {
		t.leave(tenant, turn)
		return nil, context.Cause(ctx)
	}
	return func() { t.end(tenant) }, nil
}

// join adds a caller of the tenant. It returns a channel that is closed when the caller's turn comes.
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

// leave removes a waiting caller of the tenant. If the caller got its turn at the same moment, leave frees the turn.
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
		// Move the tenant to the end, so that all other tenants get a turn before the next caller of this tenant.
		t.order = append(slices.Delete(t.order, at, at+1), tenant)
		t.remove(tenant, 0)
	}
}

// remove removes the waiting caller with the index at.
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
