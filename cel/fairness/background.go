// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"sync"
)

// Background works for tenants in goroutines of its own, for each tenant on one thing after the
// other. Where that is to be fair to other tenants it takes [Turns]. It is safe for concurrent use.
type Background[K comparable] struct {
	ctx context.Context

	mutex sync.Mutex
	// waiting has an entry for each tenant that is worked for, with what comes next.
	waiting map[string][]task[K]
	// keys are those of all tasks that wait or are worked on.
	keys map[K]bool
}

type task[K comparable] struct {
	key  K
	work func(context.Context)
	done func()
}

// NewBackground begins nothing any more when the context ends, and ends the contexts of what has
// begun.
func NewBackground[K comparable](ctx context.Context) *Background[K] {
	return &Background[K]{ctx: ctx, waiting: map[string][]task[K]{}, keys: map[K]bool{}}
}

// Add has work done for the tenant, unless there is some with that key that has not ended. The
// context of the work is that of the tenant. done is called when it has ended, or when the context of
// the Background has: an Add that did nothing because of this key was before that.
func (b *Background[K]) Add(tenant string, key K, work func(context.Context), done func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.keys[key] {
		return
	}
	b.keys[key] = true
	others, running := b.waiting[tenant]
	b.waiting[tenant] = append(others, task[K]{key, work, done})
	if !running {
		go b.run(tenant)
	}
}

func (b *Background[K]) run(tenant string) {
	ctx := WithTenant(b.ctx, tenant)
	for {
		next, ok := b.next(tenant)
		if !ok {
			return
		}
		if ctx.Err() == nil {
			next.work(ctx)
		}
		b.ended(next.key)
		next.done()
	}
}

func (b *Background[K]) next(tenant string) (next task[K], ok bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	tasks := b.waiting[tenant]
	if len(tasks) == 0 {
		delete(b.waiting, tenant)
		return next, false
	}
	next = tasks[0]
	tasks[0] = task[K]{}
	b.waiting[tenant] = tasks[1:]
	return next, true
}

func (b *Background[K]) ended(key K) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.keys, key)
}
