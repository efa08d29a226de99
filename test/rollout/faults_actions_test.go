// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/faults"
)

// action is something that goes wrong. It is over when run returns.
type action struct {
	name string
	// apart says that the API server does not answer meanwhile, not even the test.
	apart bool
	run   func(context.Context, *trouble) error
}

// How long something goes wrong. A lease is over after less than outage.
const (
	faultsLease = 6 * time.Second
	outage      = 9 * time.Second
	short       = 3 * time.Second
)

// actions are what goes wrong, beside what requests meet all the time.
func actions() []action {
	return []action{
		{name: "a storm of faults", run: func(ctx context.Context, u *trouble) error {
			return u.during(ctx, faults.Storm, outage, u.programs()...)
		}},
		{name: "a storm at one scheduler", run: func(ctx context.Context, u *trouble) error { return u.during(ctx, faults.Storm, outage, u.any()) }},
		{name: "a partition of one scheduler", run: func(ctx context.Context, u *trouble) error { return u.partition(ctx, u.any()) }},
		{name: "a partition of all schedulers", run: func(ctx context.Context, u *trouble) error { return u.partition(ctx, u.schedulers...) }},
		{name: "a partition of the controller manager", run: func(ctx context.Context, u *trouble) error { return u.partition(ctx, cluster.controllers) }},
		{name: "a scheduler killed", run: func(_ context.Context, u *trouble) error { u.any().kill(); return nil }},
		{name: "all schedulers killed", run: func(_ context.Context, u *trouble) error {
			for _, r := range u.schedulers {
				r.kill()
			}
			return nil
		}},
		{name: "the controller manager killed", run: func(context.Context, *trouble) error { cluster.controllers.kill(); return nil }},
		{name: "a scheduler paused within its lease", run: func(ctx context.Context, u *trouble) error { return u.any().pause(ctx, faultsLease/3) }},
		{name: "the controller manager paused", run: func(ctx context.Context, _ *trouble) error { return cluster.controllers.pause(ctx, outage) }},
		{name: "the API server killed", apart: true, run: func(ctx context.Context, _ *trouble) error { return cluster.RestartAPIServer(ctx, nil) }},
		{name: "the API server down for a while", apart: true, run: func(ctx context.Context, _ *trouble) error {
			return cluster.RestartAPIServer(ctx, func() { sleep(ctx, outage) })
		}},
		{name: "the API server paused", apart: true, run: func(ctx context.Context, _ *trouble) error {
			return pause(ctx, cluster.Running(controlplane.KubeAPIServer), short)
		}},
		{name: "etcd killed", apart: true, run: func(ctx context.Context, _ *trouble) error { return cluster.RestartEtcd(ctx, nil) }},
		{name: "etcd down for a while", apart: true, run: func(ctx context.Context, _ *trouble) error {
			return cluster.RestartEtcd(ctx, func() { sleep(ctx, short) })
		}},
		{name: "etcd paused", apart: true, run: func(ctx context.Context, _ *trouble) error {
			return pause(ctx, cluster.Running(controlplane.Etcd), short)
		}},
		{name: "etcd slow", run: func(ctx context.Context, _ *trouble) error {
			return slow(ctx, cluster.Running(controlplane.Etcd), outage)
		}},
	}
}

// guardActions are what goes wrong besides where allocations are guarded. They begin when a guard is active, or it could
// not show what it does.
func guardActions() []action {
	return []action{
		// It may send what it has chosen before, when others have these devices: only the guard can refuse that.
		{name: "a scheduler paused beyond its lease", run: guarding(func(ctx context.Context, u *trouble, _ *replica) error { return u.any().pause(ctx, outage) })},
		{name: "the active guard killed", run: guarding(func(_ context.Context, _ *trouble, active *replica) error { active.kill(); return nil })},
		{name: "all guards killed", run: guarding(func(ctx context.Context, u *trouble, _ *replica) error { return u.guards.killAll(ctx) })},
		{name: "the active guard paused within its lease", run: guarding(func(ctx context.Context, _ *trouble, active *replica) error {
			return active.pause(ctx, faultsLease/3)
		})},
		{name: "the active guard paused beyond its lease", run: guarding(func(ctx context.Context, _ *trouble, active *replica) error {
			return active.pause(ctx, outage)
		})},
		{name: "a partition of the active guard", run: guarding(func(ctx context.Context, u *trouble, active *replica) error { return u.partition(ctx, active) })},
		{name: "a partition of all guards", run: guarding(func(ctx context.Context, u *trouble, _ *replica) error {
			return u.partition(ctx, u.guards.programs()...)
		})},
	}
}

// guarding waits until a guard is active.
func guarding(run func(_ context.Context, _ *trouble, active *replica) error) func(context.Context, *trouble) error {
	return func(ctx context.Context, u *trouble) error {
		active, err := u.guards.active(ctx)
		if err != nil {
			return err
		}
		return run(ctx, u, active)
	}
}

// trouble is what the actions are about.
type trouble struct {
	schedulers []*replica
	// guards are nil where allocations are not guarded.
	guards *guards
	// chosen is a number for the scheduler that any returns.
	chosen int
	// usual is what requests meet all the time.
	usual faults.Mix
}

func (u *trouble) any() *replica { return u.schedulers[u.chosen%len(u.schedulers)] }

func (u *trouble) programs() []*replica {
	all := append([]*replica{cluster.controllers}, u.schedulers...)
	if u.guards != nil {
		all = append(all, u.guards.programs()...)
	}
	return all
}

// set has all requests meet the mix.
func (u *trouble) set(mix faults.Mix) {
	for _, r := range u.programs() {
		r.faults.Set(mix)
	}
}

func (u *trouble) during(ctx context.Context, mix faults.Mix, d time.Duration, programs ...*replica) error {
	for _, r := range programs {
		r.faults.Set(mix)
		defer r.faults.Set(u.usual)
	}
	sleep(ctx, d)
	return ctx.Err()
}

func (u *trouble) partition(ctx context.Context, programs ...*replica) error {
	for _, r := range programs {
		r.faults.Partition()
		defer r.faults.Set(u.usual)
	}
	sleep(ctx, outage)
	return ctx.Err()
}

func pause(ctx context.Context, p *controlplane.Process, d time.Duration) error {
	if err := p.Pause(); err != nil {
		return err
	}
	sleep(ctx, d)
	return errors.Join(ctx.Err(), p.Continue())
}

// slow gives a process a fifth of the time, in parts that are too short for anyone to notice
// but for the answers that take longer, as those of a slow disk do.
func slow(ctx context.Context, p *controlplane.Process, d time.Duration) error {
	const off, on = 200 * time.Millisecond, 50 * time.Millisecond
	for range d / (off + on) {
		if err := pause(ctx, p, off); err != nil {
			return err
		}
		sleep(ctx, on)
	}
	return ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
