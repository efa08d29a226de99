// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"sync"
)

// Background runs work for tenants in its own goroutines. The tasks of one tenant run one after the other. A task that must be
// fair to other tenants takes [Turns]. Background is safe for concurrent use.
type Background[K comparable] struct {
	ctx context.Context

	mutex sync.Mutex
	// waiting has an entry for each tenant with a running task. The entry has the tasks of the tenant that wait.
	waiting map[string][]task[K]
	// keys are the keys of all waiting and running tasks.
	keys map[K]bool
}

type task[K comparable] struct {
	key  K
	work func(context.Context)
	done func()
}

// NewBackground returns a Background. When ctx ends, no more work starts, and the contexts of running work end.
func NewBackground[K comparable](ctx context.Context) *Background[K] {
	return &Background[K]{ctx: ctx, waiting: map[string][]task[K]{}, keys: map[K]bool{}}
}

// Add adds work for the tenant, unless unfinished work has the same key. work gets a context with the tenant. done is called
// when the work has ended. If ctx of the Background has ended, done is called without the work. The key is free again before
// done is called.
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
