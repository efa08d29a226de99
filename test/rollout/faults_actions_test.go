// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/faults"
)

// An action causes a fault. The fault is over when run returns.
type action struct {
	name string
	// apart is set if the API server answers no request during the fault, not even requests of the test.
	apart bool
	run   func(context.Context, *trouble) error
}

// Durations of faults. An outage is longer than the duration of a lease.
const (
	faultsLease = 6 * time.Second
	outage      = 9 * time.Second
	short       = 3 * time.Second
)

// actions returns all actions. In addition, requests always meet the faults of trouble.usual.
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

// guardActions returns the additional actions if a guard (the webhook against double allocations) is used. Each waits until a
// guard is active, because otherwise it would not test the guard.
func guardActions() []action {
	return []action{
		// The paused scheduler may later send an allocation of devices that another scheduler has allocated in the meantime.
		// Only the guard can reject it.
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

// guarding returns an action that waits until a guard is active, and then calls run with the active replica.
func guarding(run func(_ context.Context, _ *trouble, active *replica) error) func(context.Context, *trouble) error {
	return func(ctx context.Context, u *trouble) error {
		active, err := u.guards.active(ctx)
		if err != nil {
			return err
		}
		return run(ctx, u, active)
	}
}

// trouble holds the programs to which the actions apply faults.
type trouble struct {
	schedulers []*replica
	// guards are the replicas of the guard. It is nil if there is no guard.
	guards *guards
	// chosen is the index of the scheduler that any returns.
	chosen int
	// usual is the mix of faults that requests meet all the time.
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

// set sets the mix of faults for the requests of all programs.
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

// slow stops and continues a process in short intervals, so that it runs for a fifth of the time. It then responds slowly, as
// with a slow disk.
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

// restartAfter is the time after which a program that has ended is started again.
const restartAfter = time.Second

// A replica is a program that the test restarts whenever it ends.
type replica struct {
	name   string
	faults *faults.Faults
	gate   *gate
	launch func(context.Context) (*controlplane.Process, error)

	mu      sync.Mutex
	process *controlplane.Process
	// starts is the number of successful starts. failures is the number of failed ones.
	starts, failures int
	ended            chan struct{}
}

// newReplica returns a replica that connects to the API server through three layers: a gate, then faults, which are determined
// by the seed, and then a recorder for the history. At first there are no faults.
func newReplica(name string, config *rest.Config, seed uint64) (*replica, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	api, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	r := &replica{name: name, faults: faults.New(seed, cluster.history.Record(name, transport))}
	r.gate = newGate(api, r.faults)
	return r, nil
}

// keep starts the program, and restarts it whenever it ends until the context ends. It returns after the first start.
func (r *replica) keep(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.running().Done():
			}
			for again := true; again; {
				select {
				case <-ctx.Done():
					return
				case <-time.After(restartAfter):
				}
				// If the control plane does not respond, retry.
				again = r.start(ctx) != nil
			}
		}
	}()
	return nil
}

func (r *replica) start(ctx context.Context) error {
	process, err := r.launch(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failures++
		return err
	}
	r.starts++
	r.process = process
	return nil
}

func (r *replica) running() *controlplane.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

func (r *replica) counts() (starts, failures int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts, r.failures
}

// end stops restarting the program, and ends it.
func (r *replica) end() {
	<-r.ended
	r.running().Kill()
	r.gate.close()
}

// kill kills the process. It does nothing if the process has already ended.
func (r *replica) kill() { r.running().Kill() }

// pause stops the process for a duration.
func (r *replica) pause(ctx context.Context, d time.Duration) error {
	process := r.running()
	if err := process.Pause(); err != nil {
		return nil // the process has ended, so it is restarted
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return errors.Join(ctx.Err(), process.Continue())
}

// A protocol is the log of a run.
type protocol struct {
	t *testing.T
	// file is the file of the protocol, or nil.
	file *os.File
}

// newProtocolFile creates the file of a protocol. It returns nil for an empty path.
func newProtocolFile(t *testing.T, path string) *os.File {
	t.Helper()
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file
}

func (p *protocol) printf(format string, args ...any) {
	p.t.Helper()
	p.t.Logf(format, args...)
	if p.file != nil {
		_, err := fmt.Fprintf(p.file, format+"\n", args...)
		require.NoError(p.t, err)
	}
}

// summary logs how often each action has happened. It also logs how often all other events have happened since the counts in
// before.
func (p *protocol) summary(w *workload, met, counts, before map[string]int) {
	p.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(met)) {
		p.printf("%4d times %s", met[name], name)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		p.printf("%6d %s", counts[what]-before[what], what)
	}
	entries := w.ledger.Entries()
	p.printf("%d versions of claims, %d allocations, %d devices twice or changed", entries.Events, entries.Allocations, len(entries.Violations))
}

// counts returns how often each event has happened so far, summed over all programs.
func (u *trouble) counts() map[string]int {
	counts := map[string]int{}
	for _, r := range u.programs() {
		for kind, n := range r.faults.Counts() {
			counts["requests: "+string(kind)] += n
		}
		starts, failures := r.counts()
		counts["restarts of "+r.name] = starts
		counts["restarts of "+r.name+" that failed"] = failures
	}
	for what, n := range cluster.history.Counts() {
		counts["operations: "+what] = n
	}
	return counts
}
