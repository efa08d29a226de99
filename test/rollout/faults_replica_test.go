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

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/faults"
)

// restartAfter is how long a program that has ended stays so, as if a kubelet started it
// again.
const restartAfter = time.Second

// replica is a program that is started again whenever it has ended.
type replica struct {
	name   string
	faults *faults.Faults
	gate   *gate
	launch func(context.Context) (*controlplane.Process, error)

	mu      sync.Mutex
	process *controlplane.Process
	// starts are how often it came to run, failures how often it did not.
	starts, failures int
	ended            chan struct{}
}

// newReplica makes a gate to the API server, behind which faults are drawn from the seed, and
// behind them the history is kept. There are no faults yet.
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

// keep starts the program again and again until the context ends, and returns when it runs
// for the first time.
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
				// A control plane that does not answer is a reason to try again.
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

// end waits until the program is no longer started, and ends it.
func (r *replica) end() {
	<-r.ended
	r.running().Kill()
	r.gate.close()
}

// kill ends the process at once, if it has not ended by itself.
func (r *replica) kill() { r.running().Kill() }

// pause stops the process for as long, and has it go on.
func (r *replica) pause(ctx context.Context, d time.Duration) error {
	process := r.running()
	if err := process.Pause(); err != nil {
		return nil // it is about to be started again
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return errors.Join(ctx.Err(), process.Continue())
}

// protocol is what is written about a run.
type protocol struct {
	t *testing.T
	// file may be nil.
	file *os.File
}

// newProtocolFile is nil for an empty path.
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

// summary is written at the end: how often each action was met, and how often all else happened since before.
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

// counts is what has happened so far, to all programs that take part.
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
