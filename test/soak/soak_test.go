// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/ledger"
)

// A run holds the parameters of a soak test. rate is the number of pods that are created per second.
type run struct {
	duration, sampleEvery, window time.Duration
	nodes, pods, rate             int
	log                           string // path of the file, or empty
}

// chosenRun returns a full run of the duration in CELSET_SOAK. Without this variable, it returns a short run that only tests
// the test.
func chosenRun(t *testing.T) run {
	t.Helper()
	text := os.Getenv("CELSET_SOAK")
	if text == "" {
		return run{duration: 10 * time.Second, sampleEvery: 2 * time.Second, window: 5 * time.Second, nodes: 20, pods: 60, rate: 15}
	}
	duration, err := time.ParseDuration(text)
	require.NoError(t, err, "CELSET_SOAK is the duration of the run")
	return run{
		duration: duration, sampleEvery: time.Minute, window: 5 * time.Minute,
		nodes: 1000, pods: 3000, rate: 10, log: os.Getenv("CELSET_SOAK_LOG"),
	}
}

// drainTimeout is the limit for deleting all pods and their claims at the end of a run.
const drainTimeout = 3 * time.Minute

func TestSoak(t *testing.T) {
	cases.OnlyNightly(t, "measures memory and delays")
	r := chosenRun(t)
	cp := startCluster(t, r.nodes)
	scheduler := startScheduler(t, cp, controlplane.CelsetScheduler)
	p := newProtocol(t, r.log)
	l, stopLedger := cp.KeepLedger(t, namespace, false, judge)
	c := newChurn(cp.Client(), namespace)
	require.NoError(t, c.watch(t.Context()))

	p.printf("%d nodes with %d devices each, %d pods of %d kinds for 2 profiles, %d new ones a second", r.nodes, len(mesh.Devices), r.pods, len(kinds), r.rate)
	samples := keepGoing(t, r, p, l, c, scheduler)
	drain(t, cp, l)
	stopLedger()

	last, err := takeSample(t.Context(), scheduler)
	require.NoError(t, err)
	e := l.Entries()
	p.sample(last, e, c)
	p.printf("end: %d versions of claims seen, %d allocations, %d violations", e.Events, e.Allocations, len(e.Violations))
	require.Empty(t, e.Violations)
	require.Empty(t, c.problems)
	require.Positive(t, e.Allocations)
	require.NoError(t, scheduler.Err())
	requireNoLeak(t, samples, last)
}

// keepGoing creates and deletes pods for the duration of the run, and logs measurements.
func keepGoing(t *testing.T, r run, p *protocol, l *ledger.Ledger, c *churn, scheduler *controlplane.Process) []sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), r.duration)
	defer cancel()
	churned := make(chan struct{})
	go func() {
		defer close(churned)
		c.run(ctx, r.pods, r.rate)
	}()
	sampling, windows := time.NewTicker(r.sampleEvery), time.NewTicker(r.window)
	defer sampling.Stop()
	defer windows.Stop()
	var samples []sample
	for {
		select {
		case <-churned:
			return samples
		case <-sampling.C:
			s, err := takeSample(t.Context(), scheduler)
			require.NoError(t, err)
			samples = append(samples, s)
			p.sample(s, l.Entries(), c)
		case <-windows.C:
			p.latencies(r.window, c.takeLatencies())
		}
	}
}

// drain deletes all pods, and waits until no device is allocated.
func drain(t *testing.T, cp *env.Env, l *ledger.Ledger) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	require.NoError(t, cp.Client().CoreV1().Pods(namespace).DeleteCollection(t.Context(), now, metav1.ListOptions{}))
	complaint := ""
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, drainTimeout, true, func(ctx context.Context) (bool, error) {
		claims, err := cp.Client().ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		inUse := l.Entries().InUse
		complaint = fmt.Sprintf("%d claims are left, and %d devices in use", len(claims.Items), inUse)
		return len(claims.Items) == 0 && inUse == 0, nil
	})
	require.NoError(t, err, complaint)
}

// requireNoLeak requires that the scheduler's memory and goroutines at the end of a long run are not much more than at the
// start, after the cluster was full.
func requireNoLeak(t *testing.T, samples []sample, last sample) {
	t.Helper()
	const fill = 6 // number of samples until the cluster is full
	if len(samples) < 2*fill {
		return
	}
	early, late := mean(samples[fill:2*fill]), mean(samples[len(samples)-fill:])
	require.Less(t, late.heap, 1.3*early.heap, "the heap grows")
	require.Less(t, late.goroutines, early.goroutines+early.goroutines/5+50, "goroutines pile up")
	require.Less(t, last.goroutines, early.goroutines+50, "goroutines are left")
}

func mean(samples []sample) sample {
	var sum sample
	for _, s := range samples {
		sum.goroutines += s.goroutines
		sum.heap += s.heap
	}
	return sample{sum.goroutines / len(samples), sum.heap / float64(len(samples))}
}

const namespace = "soak"

// startCluster starts a control plane, and creates nodes, devices and claim templates. There are no kubelets, so pods never
// run.
func startCluster(t *testing.T, nodes int) *env.Env {
	t.Helper()
	cp, _ := startClusterWith(t, nodes, "--kube-api-qps=500", "--kube-api-burst=500")
	return cp
}

// startClusterWith is like startCluster, with additional flags of the controller manager. It also returns the names of the
// nodes.
func startClusterWith(t *testing.T, nodes int, controllers ...string) (*env.Env, []string) {
	t.Helper()
	cp := env.Start(t, controlplane.Options{
		SkipKwok: true, ControllerManagerArgs: controllers, Users: []controlplane.User{env.Scheduler},
	}, controlplane.CelsetScheduler)
	_, err := cp.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	cp.CreateClass(t, mesh.Drivers()[0])
	for _, k := range append(slices.Clone(kinds), block) {
		env.Create(t, cp.Client().ResourceV1().ResourceClaimTemplates(namespace), k.template())
	}
	names, err := controlplane.CreateNodes(t.Context(), cp.Client(), nodes, controlplane.NodeOptions{Static: true})
	require.NoError(t, err)
	cp.Publish(t, mesh, names...)
	return cp, names
}

// startScheduler starts celset-scheduler with the configuration in manifests. One process has both profiles. The rate limit of
// its client is raised, because the default of 50 requests per second suffices for only 10 pods per second.
func startScheduler(t *testing.T, cp *env.Env, name string) *controlplane.Process {
	t.Helper()
	return cp.StartScheduler(t, controlplane.SchedulerOptions{Name: name, Config: schedulerConfig(t)})
}

func schedulerConfig(t *testing.T) []byte {
	t.Helper()
	config, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	require.NoError(t, err)
	return append(config, "\nclientConnection: {qps: 500, burst: 500}\n"...)
}
