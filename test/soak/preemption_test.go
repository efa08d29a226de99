// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/ledger"
)

const (
	preemptionGate = "DRADevicePreemption"
	// settleTimeout is for pods that could run when no more come.
	settleTimeout = 3 * time.Minute
)

// preemptionRun says how long, on how much, and how often a scheduler is killed.
type preemptionRun struct {
	duration, sampleEvery time.Duration
	nodes, rate           int
	// killAfter is how long a scheduler lives, at least and at most.
	killAfter [2]time.Duration
	log       string
}

// chosenPreemptionRun is a whole one if CELSET_SOAK_PREEMPTION has its duration, and otherwise one that
// tests the test.
func chosenPreemptionRun(t *testing.T) preemptionRun {
	t.Helper()
	text := os.Getenv("CELSET_SOAK_PREEMPTION")
	if text == "" {
		return preemptionRun{
			duration: 15 * time.Second, sampleEvery: 5 * time.Second, nodes: 10, rate: 4,
			killAfter: [2]time.Duration{3 * time.Second, 6 * time.Second},
		}
	}
	duration, err := time.ParseDuration(text)
	require.NoError(t, err, "CELSET_SOAK_PREEMPTION is the duration of the run")
	return preemptionRun{
		duration: duration, sampleEvery: time.Minute, nodes: 200, rate: 3,
		killAfter: [2]time.Duration{10 * time.Second, time.Minute}, log: os.Getenv("CELSET_SOAK_LOG"),
	}
}

// successors are schedulers one after the other.
type successors struct {
	t       *testing.T
	cp      *env.Env
	process *controlplane.Process
	logs    []string
}

func (s *successors) start() {
	s.t.Helper()
	s.process = startScheduler(s.t, s.cp, fmt.Sprintf("%s-%d", controlplane.CelsetScheduler, len(s.logs)+1), preemptionGate)
	s.logs = append(s.logs, s.process.LogFile())
}

// TestSoakPreemption has pods of three priorities come and go on a cluster that is too small for them,
// while schedulers are killed. No device ever has two claims, nobody is evicted for nothing, and whoever
// could run if others were evicted runs in the end.
func TestSoakPreemption(t *testing.T) {
	cases.OnlyNightly(t, "runs for a time, whatever happens in it")
	run := chosenPreemptionRun(t)
	cp := startCluster(t, run.nodes)
	p := newProtocol(t, run.log)
	l, stopLedger := cp.KeepLedger(t, namespace, false, judge)
	r := newRanked(t, cp, run.nodes)
	require.NoError(t, r.watch(t.Context()))
	s := &successors{t: t, cp: cp}
	s.start()
	for _, rank := range slices.Backward(ranks) {
		p.printf("%d pods of priority %d", rank.pods(run.nodes), rank.priority)
		require.NoError(t, r.fill(t.Context(), rank))
	}
	p.printf("%d nodes with %d devices each, %d new pods a second, and those anew that are evicted; pods end within %v; schedulers are killed after %v to %v",
		run.nodes, len(mesh.Devices), run.rate, grace, run.killAfter[0], run.killAfter[1])
	keepKilling(t, run, p, l, r, s)

	p.printf("no more pods come")
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, settleTimeout, true, func(ctx context.Context) (bool, error) {
		return len(r.waiting()) == 0, r.addAgain(ctx)
	})
	require.NoError(t, err, "these pods could run, and wait: %v", r.waiting())
	holds, err := gauge(t.Context(), s.process, "celset_device_holds")
	require.NoError(t, err)
	decisions, err := readLogs(time.Now().Year(), s.logs...)
	require.NoError(t, err)
	summary := r.summary(decisions)
	p.ranked(r, l.Entries())
	p.preemption(r, summary, holds)

	r.tell(t, decisions, s.logs)
	r.end()
	drain(t, cp, l)
	stopLedger()
	e := l.Entries()
	p.printf("end: %d versions of claims seen, %d allocations, %d violations", e.Events, e.Allocations, len(e.Violations))
	require.Empty(t, e.Violations)
	require.Empty(t, r.problems)
	require.Zero(t, holds, "nobody waits for devices any more")
	require.Empty(t, summary.unexplained())
	require.Positive(t, summary.total())
	require.NotEmpty(t, r.kills)
	require.NoError(t, s.process.Err())
}

// keepKilling exchanges pods and schedulers, and writes down what it sees.
func keepKilling(t *testing.T, run preemptionRun, p *protocol, l *ledger.Ledger, r *ranked, s *successors) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), run.duration)
	defer cancel()
	exchanged := make(chan struct{})
	go func() {
		defer close(exchanged)
		r.run(ctx, run.rate)
	}()
	sampling := time.NewTicker(run.sampleEvery)
	defer sampling.Stop()
	random := rand.New(rand.NewPCG(3, 3))
	lifetime := func() time.Duration {
		return run.killAfter[0] + time.Duration(random.Int64N(int64(run.killAfter[1]-run.killAfter[0])))
	}
	kill := time.NewTimer(lifetime())
	defer kill.Stop()
	for {
		select {
		case <-exchanged:
			return
		case <-kill.C:
			require.NoError(t, s.process.Err())
			s.process.Kill()
			r.killed()
			s.start()
			kill.Reset(lifetime())
		case <-sampling.C:
			p.ranked(r, l.Entries())
		}
	}
}

// tell logs the stories of evictions that can't be explained.
func (r *ranked) tell(t *testing.T, d decisions, logs []string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lives {
		if l.evicted.IsZero() || !strings.HasPrefix(explain(l, r.lives, d, r.kills), unexplained) {
			continue
		}
		lines := story(l.name, logs...)
		if chosen := d.choiceOf(l); chosen != nil {
			lines = story(chosen.preemptor, logs...)
		}
		t.Logf("%s was evicted at %s; its story, or that of its preemptor:\n%s", l.name, l.evicted.Format(time.TimeOnly), strings.Join(lines, "\n"))
	}
}

// ranked writes down how many pods of each rank there are.
func (p *protocol) ranked(r *ranked, e ledger.Entries) {
	text := ""
	for _, rank := range ranks {
		alive := r.alive(rank)
		r.mu.Lock()
		waiting := 0
		for _, l := range alive {
			if l.node == "" {
				waiting++
			}
		}
		r.mu.Unlock()
		text += fmt.Sprintf("%s: %d pods, %d wait; ", rank.name, len(alive), waiting)
	}
	r.mu.Lock()
	evicted := 0
	for _, l := range r.lives {
		if !l.evicted.IsZero() {
			evicted++
		}
	}
	kills := len(r.kills)
	r.mu.Unlock()
	p.printf("%sevicted: %d; schedulers killed: %d; devices in use: %d; allocations: %d; violations: %d",
		text, evicted, kills, e.InUse, e.Allocations, len(e.Violations))
}

// preemption sums up.
func (p *protocol) preemption(r *ranked, evictions explained, holds float64) {
	for _, why := range slices.Sorted(maps.Keys(evictions)) {
		p.printf("%5d evicted: %s", evictions[why], why)
	}
	for _, rank := range ranks {
		if !rank.couldRun() {
			continue
		}
		sorted, afterKill := r.latencies(rank)
		p.printf("%d pods of priority %d, from creation to node: p50 %v, p95 %v, p99 %v, longest %v; longest with a scheduler killed meanwhile %v", len(sorted), rank.priority,
			percentile(sorted, 50).Round(time.Millisecond), percentile(sorted, 95).Round(time.Millisecond),
			percentile(sorted, 99).Round(time.Millisecond), percentile(sorted, 100).Round(time.Millisecond), percentile(afterKill, 100).Round(time.Millisecond))
	}
	p.printf("holds left: %.0f", holds)
}

// latencies are those of the pods of a rank that were bound, in ascending order: of those while which no
// scheduler was killed, and of the others.
func (r *ranked) latencies(rank *rank) (undisturbed, killed []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lives {
		if l.rank != rank || l.bound.IsZero() {
			continue
		}
		if slices.ContainsFunc(r.kills, func(at time.Time) bool { return at.After(l.created) && at.Before(l.bound) }) {
			killed = append(killed, l.bound.Sub(l.created))
		} else {
			undisturbed = append(undisturbed, l.bound.Sub(l.created))
		}
	}
	slices.Sort(undisturbed)
	slices.Sort(killed)
	return undisturbed, killed
}
