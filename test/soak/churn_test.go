// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/ledger"
)

// A churn creates pods up to a number, and then deletes one for each new pod.
type churn struct {
	client    kubernetes.Interface
	namespace string
	random    *rand.Rand
	names     []string // names of the existing pods
	problems  []string

	mu        sync.Mutex
	made      int
	created   map[string]time.Time // creation time of each pod that is not bound yet
	latencies []time.Duration      // durations from creation to binding, since the last call of takeLatencies
	bound     int
}

func newChurn(client kubernetes.Interface, namespace string) *churn {
	return &churn{client: client, namespace: namespace, random: rand.New(rand.NewPCG(7, 7)), created: map[string]time.Time{}}
}

// watch records when pods are bound, until the context ends.
func (c *churn) watch(ctx context.Context) error {
	return watchPods(ctx, c.client, c.namespace, func(_, obj any) { c.notice(obj) })
}

// watchPods calls notice for each change of a pod, until the context ends. before is the previous version, or nil for a new
// pod.
func watchPods(ctx context.Context, client kubernetes.Interface, namespace string, notice func(before, obj any)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { notice(nil, obj) },
		UpdateFunc: notice,
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, factory.Shutdown)
	return nil
}

func (c *churn) notice(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if created, waiting := c.created[pod.Name]; waiting {
		delete(c.created, pod.Name)
		c.latencies = append(c.latencies, time.Since(created))
		c.bound++
	}
}

// run creates rate pods per second. When target pods exist, it deletes a pod for each new one.
func (c *churn) run(ctx context.Context, target, rate int) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := c.add(ctx)
		if err == nil && len(c.names) > target {
			err = c.remove(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.problems = append(c.problems, err.Error())
		}
	}
}

func (c *churn) add(ctx context.Context) error {
	k := kinds[c.random.IntN(len(kinds))]
	c.mu.Lock()
	c.made++
	name := fmt.Sprintf("%s-%d", k.name, c.made)
	c.created[name] = time.Now()
	c.mu.Unlock()
	_, err := c.client.CoreV1().Pods(c.namespace).Create(ctx, k.pod(name), metav1.CreateOptions{})
	c.names = append(c.names, name)
	return err
}

// remove deletes a random pod. Sometimes it chooses the newest pod, which may not be bound yet.
func (c *churn) remove(ctx context.Context) error {
	at := c.random.IntN(len(c.names))
	if c.random.IntN(20) == 0 {
		at = len(c.names) - 1
	}
	name := c.names[at]
	c.names = slices.Delete(c.names, at, at+1)
	c.mu.Lock()
	delete(c.created, name)
	c.mu.Unlock()
	return c.client.CoreV1().Pods(c.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// takeLatencies returns the durations from creation to binding that were recorded since the last call, sorted.
func (c *churn) takeLatencies() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.latencies
	c.latencies = nil
	slices.Sort(taken)
	return taken
}

// counts returns the numbers of pods that were created, that were bound, and that wait.
func (c *churn) counts() (made, bound, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, c.bound, len(c.created)
}

// A sample holds measurements of the scheduler's process at one time.
type sample struct {
	goroutines int
	heap       float64 // MiB, after a garbage collection
}

// takeSample makes the scheduler run a garbage collection, and reads its metrics.
func takeSample(ctx context.Context, scheduler *controlplane.Process) (sample, error) {
	if _, err := scheduler.Get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return sample{}, err
	}
	goroutines, err := gauge(ctx, scheduler, "go_goroutines")
	if err != nil {
		return sample{}, err
	}
	heap, err := gauge(ctx, scheduler, "go_memstats_heap_alloc_bytes")
	return sample{goroutines: int(goroutines), heap: heap / (1 << 20)}, err
}

// gauge returns the value of a gauge of the scheduler, or 0 if there is no such metric.
func gauge(ctx context.Context, scheduler *controlplane.Process, name string) (float64, error) {
	content, err := scheduler.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	values := families[name].GetMetric()
	if len(values) == 0 {
		return 0, nil
	}
	return values[0].GetGauge().GetValue(), nil
}

// percentile returns the p-th percentile of sorted durations, or 0 if there are no durations.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// A protocol is the log of a run.
type protocol struct {
	to    io.Writer
	start time.Time
}

// newProtocol returns a protocol that writes to the test's output. If log isn't empty, it also writes to the file of this name.
func newProtocol(t *testing.T, log string) *protocol {
	t.Helper()
	p := &protocol{to: t.Output(), start: time.Now()}
	if log != "" {
		file, err := os.Create(log)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, file.Close()) })
		p.to = io.MultiWriter(p.to, file)
	}
	return p
}

func (p *protocol) printf(format string, args ...any) {
	fmt.Fprintf(p.to, "%8s  "+format+"\n", append([]any{time.Since(p.start).Round(time.Second)}, args...)...)
}

func (p *protocol) sample(s sample, e ledger.Entries, c *churn) {
	made, bound, waiting := c.counts()
	p.printf("pods: %d made, %d bound, %d waiting; devices in use: %d; allocations: %d; violations: %d; scheduler: %d goroutines, %.0f MiB heap",
		made, bound, waiting, e.InUse, e.Allocations, len(e.Violations), s.goroutines, s.heap)
}

func (p *protocol) latencies(window time.Duration, sorted []time.Duration) {
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	p.printf("%d pods in the last %v, from creation to node: p50 %v, p95 %v, p99 %v", len(sorted), window.Round(time.Second),
		round(percentile(sorted, 50)), round(percentile(sorted, 95)), round(percentile(sorted, 99)))
}
