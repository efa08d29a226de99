// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/ledger"
)

const (
	preemptionGate = "CelsetDevicePreemption"
	// settleTimeout is the maximum time from the creation of the last pod until all pods are bound.
	settleTimeout = 3 * time.Minute
)

// A preemptionRun holds the duration of a run, the size of the cluster, and the number of faults.
type preemptionRun struct {
	duration, sampleEvery time.Duration
	nodes, rate           int
	// kills is the number of schedulers to kill. stops is the number of times that the API server is killed. pauses is the
	// number of times that the controller of claims is paused.
	kills, stops, pauses int
	// pause is how long the controller is paused each time. stop is how long no API server runs.
	pause, stop time.Duration
	log         string
}

// chosenPreemptionRun returns a full run of the duration in CELSET_SOAK_PREEMPTION, or a short run that tests the test.
// CELSET_SOAK_NODES, CELSET_SOAK_KILLS and CELSET_SOAK_STOPS change the numbers of a full run.
func chosenPreemptionRun(t *testing.T) preemptionRun {
	t.Helper()
	text := os.Getenv("CELSET_SOAK_PREEMPTION")
	if text == "" {
		return preemptionRun{
			duration: 20 * time.Second, sampleEvery: 5 * time.Second, nodes: 10, rate: 4,
			kills: 3, stops: 1, pauses: 2, pause: 3 * time.Second, stop: 2 * time.Second,
		}
	}
	duration, err := time.ParseDuration(text)
	require.NoError(t, err, "CELSET_SOAK_PREEMPTION is the duration of the run")
	minutes := int(duration.Minutes())
	return preemptionRun{
		duration: duration, sampleEvery: time.Minute, nodes: numberIn(t, "CELSET_SOAK_NODES", 200), rate: 3,
		kills: numberIn(t, "CELSET_SOAK_KILLS", max(1, minutes)), stops: numberIn(t, "CELSET_SOAK_STOPS", max(1, minutes/7)), pauses: max(1, minutes),
		pause: 8 * time.Second, stop: 5 * time.Second, log: os.Getenv("CELSET_SOAK_LOG"),
	}
}

// numberIn returns the number in an environment variable. If the variable is not set, it returns usual.
func numberIn(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// successors starts schedulers one after the other. Each connects through a crossing, a proxy that can stop writes.
type successors struct {
	t        *testing.T
	cp       *env.Env
	config   *rest.Config
	process  *controlplane.Process
	crossing *crossing.Crossing
	logs     []string
}

func (s *successors) start() {
	s.t.Helper()
	var err error
	s.crossing, err = crossing.New(s.config)
	require.NoError(s.t, err)
	s.t.Cleanup(s.crossing.Close)
	s.process = s.cp.StartScheduler(s.t, controlplane.SchedulerOptions{
		// Use the same binary for all schedulers, even if the source code changes during the run.
		Binary: s.cp.Binary(controlplane.CelsetScheduler),
		Name:   fmt.Sprintf("%s-%d", controlplane.CelsetScheduler, len(s.logs)+1), Config: schedulerConfig(s.t),
		Kubeconfig: env.Kubeconfig(s.t, s.crossing.URL()), FeatureGates: map[string]bool{preemptionGate: true},
	})
	s.logs = append(s.logs, s.process.LogFile())
}

// replace kills the scheduler and starts the next one. If evictions happen within patience, it kills the scheduler between two
// evictions.
func (s *successors) replace(random *rand.Rand, patience time.Duration) {
	s.t.Helper()
	require.NoError(s.t, s.process.Err())
	if random.IntN(3) > 0 {
		select {
		case <-s.crossing.Stop(1+random.IntN(2), crossing.IsDeletion).Reached():
		case <-time.After(patience):
		}
	}
	s.process.Kill()
	s.crossing.Close()
	s.start()
}

// TestSoakPreemption runs pods of three priorities on a cluster that is too small for them. It kills schedulers between two
// evictions, kills the API server, and delays the deallocation of claims. Some pods share claims. Pods use whole devices,
// partitions and shares. Evicted pods are created again with the same claims. A device must never be in two claims. For a pod,
// the scheduler must not evict more pods than one set of devices requires. At the end no devices may be held, and each pod that
// could run by evicting other pods must run.
func TestSoakPreemption(t *testing.T) {
	if os.Getenv("CELSET_SOAK_PREEMPTION") == "" {
		cases.OnlyNightly(t, "runs for a time, whatever happens in it")
	}
	run := chosenPreemptionRun(t)
	cp, nodes := startClusterWith(t, run.nodes, "--kube-api-qps=20", "--kube-api-burst=30")
	cp.ApplyManifests(t, "scheduler/rbac.yaml")
	publishDivided(t, cp, nodes)
	p := newProtocol(t, run.log)
	l, stopLedger := keepLedger(t, cp)
	r := newRanked(t, cp, run.nodes)
	require.NoError(t, r.watch(t.Context()))
	config, err := cp.RESTConfigFor(env.Scheduler.Name)
	require.NoError(t, err)
	s := &successors{t: t, cp: cp, config: config}
	s.start()
	r.createReplicaSets(t)
	for _, rank := range slices.Backward(ranks) {
		p.printf("%d pods of priority %d", rank.pods(run.nodes), rank.priority)
		require.NoError(t, r.fill(t.Context(), rank))
	}
	p.printf("%d nodes with %d devices each, %d new pods a second, and those anew that are evicted; pods end within %v; %d schedulers are killed, the API server %d times, the controllers are paused %d times",
		run.nodes, len(mesh.Devices), run.rate, grace, run.kills, run.stops, run.pauses)
	keepKilling(t, run, p, l, r, s)

	p.printf("no more pods come")
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, settleTimeout, true, func(ctx context.Context) (bool, error) {
		return len(r.waiting()) == 0, r.addAgain(ctx)
	})
	require.NoError(t, err, "these pods could run, and wait: %v", r.waiting())
	holds := holdsLeft(t, s.process)
	decisions, err := readLogs(time.Now().Year(), s.logs...)
	require.NoError(t, err)
	summary := r.summary(decisions)
	p.ranked(r, l.Entries())
	p.preemption(r, summary, holds)
	tooMany := r.tooMany(decisions)
	p.printf("pods for which too many were evicted: %d", len(tooMany))

	r.logUnexplained(t, decisions, s.logs)
	r.end()
	r.dissolve(t)
	drain(t, cp, l)
	stopLedger()
	e := l.Entries()
	p.printf("end: %d versions of claims seen, %d allocations, %d violations", e.Events, e.Allocations, len(e.Violations))
	require.Empty(t, e.Violations)
	require.Empty(t, r.problems)
	require.Zero(t, holds, "nobody waits for devices any more")
	require.Empty(t, summary.unexplained())
	require.Empty(t, tooMany)
	require.Positive(t, summary.total())
	require.Len(t, r.kills, run.kills)
	require.NoError(t, s.process.Err())
}

// keepLedger starts a ledger that reads the claims from etcd. Its watch continues while the API server is down.
func keepLedger(t *testing.T, cp *env.Env) (*ledger.Ledger, func()) {
	t.Helper()
	return cp.KeepLedgerOf(t, namespace, true, func() *ledger.Ledger {
		l := ledger.New(judge)
		l.AddUp(slotsUsed)
		return l
	}())
}

// holdsLeft waits up to settleTimeout until all holds have ended. It returns the number of pods that still have held devices.
func holdsLeft(t *testing.T, scheduler *controlplane.Process) (holds float64) {
	t.Helper()
	_ = wait.PollUntilContextTimeout(t.Context(), time.Second, settleTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		holds, err = gauge(ctx, scheduler, "celset_scheduler_device_holds")
		return holds == 0, err
	})
	return holds
}

// A trouble is a fault that is repeated during a run, at roughly regular times.
type trouble struct {
	times int
	run   func(context.Context) error
}

// keepKilling creates and deletes pods, applies the troubles, and logs measurements.
func keepKilling(t *testing.T, run preemptionRun, p *protocol, l *ledger.Ledger, r *ranked, s *successors) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exchanged := make(chan struct{})
	go func() {
		defer close(exchanged)
		r.run(ctx, run.rate)
	}()
	random := rand.New(rand.NewPCG(3, 3))
	troubles := schedule(run, random, map[string]trouble{
		"kill": {run.kills, func(context.Context) error {
			s.replace(random, run.duration/time.Duration(2*run.kills))
			r.killed()
			return nil
		}},
		"stop":  {run.stops, func(ctx context.Context) error { return s.cp.RestartAPIServer(ctx, func() { time.Sleep(run.stop) }) }},
		"pause": {run.pauses, func(context.Context) error { return pauseControllers(s.cp, run.pause) }},
	})
	sampling := time.NewTicker(run.sampleEvery)
	defer sampling.Stop()
	began := time.Now()
	for _, next := range troubles {
		for wait := true; wait; {
			select {
			case <-time.After(time.Until(began.Add(next.at))):
				wait = false
			case <-sampling.C:
				p.ranked(r, l.Entries())
			}
		}
		require.NoError(t, next.run(t.Context()), next.name)
	}
	time.Sleep(time.Until(began.Add(run.duration)))
	cancel()
	<-exchanged
}

// An appointment is a trouble and the time, since the start, at which it is applied.
type appointment struct {
	name string
	at   time.Duration
	run  func(context.Context) error
}

// schedule distributes the troubles over the duration of the run. The result is sorted by time.
func schedule(run preemptionRun, random *rand.Rand, troubles map[string]trouble) []appointment {
	var all []appointment
	for _, name := range slices.Sorted(maps.Keys(troubles)) {
		times := troubles[name].times
		for i := range times {
			part := run.duration / time.Duration(times)
			all = append(all, appointment{name, part*time.Duration(i) + time.Duration(random.Int64N(int64(part))), troubles[name].run})
		}
	}
	slices.SortFunc(all, func(a, b appointment) int { return cmp.Compare(a.at, b.at) })
	return all
}

func pauseControllers(cp *env.Env, d time.Duration) error {
	controllers := cp.Running(controlplane.KubeControllerManager)
	if err := controllers.Pause(); err != nil {
		return err
	}
	time.Sleep(d)
	return controllers.Continue()
}

// logUnexplained logs the log lines about each eviction that has no explanation.
func (r *ranked) logUnexplained(t *testing.T, d decisions, logs []string) {
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

// ranked logs how many pods of each rank exist, are bound and wait.
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

// preemption logs a summary of evictions and waiting times.
func (p *protocol) preemption(r *ranked, evictions explained, holds float64) {
	for _, why := range slices.Sorted(maps.Keys(evictions)) {
		p.printf("%5d evicted: %s", evictions[why], why)
	}
	for _, rank := range ranks {
		sorted, afterKill := r.latencies(rank)
		p.printf("%d pods of priority %d, from creation to node: p50 %v, p95 %v, p99 %v, longest %v; longest with a scheduler killed meanwhile %v; %s", len(sorted), rank.priority,
			percentile(sorted, 50).Round(time.Millisecond), percentile(sorted, 95).Round(time.Millisecond),
			percentile(sorted, 99).Round(time.Millisecond), percentile(sorted, 100).Round(time.Millisecond), percentile(afterKill, 100).Round(time.Millisecond), r.longestWait(rank))
	}
	p.printf("holds left: %.0f", holds)
}

// longestWait returns, as text, how long the oldest unbound pod of the rank has waited.
func (r *ranked) longestWait(rank *rank) string {
	waiting, longest := 0, time.Duration(0)
	for _, l := range r.alive(rank) {
		r.mu.Lock()
		if l.node == "" {
			waiting++
			longest = max(longest, time.Since(l.created))
		}
		r.mu.Unlock()
	}
	return fmt.Sprintf("%d wait still, for %v at most", waiting, longest.Round(time.Millisecond))
}

// latencies returns the sorted times from creation to binding of a rank's pods. If a scheduler was killed while a pod waited,
// the pod's time is in killed, otherwise in undisturbed.
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
