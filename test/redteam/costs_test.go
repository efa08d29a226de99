// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-base/metrics/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cost is what was done for pods that wait: by the scheduler, and by the API server for the scheduler.
type cost struct {
	// refused are attempts that the guard refused, failed are all attempts that found no node.
	refused, failed float64
	// patches are writes of pods' conditions. events are writes of events.
	patches, events float64
	// goroutines is the largest number of goroutines of the scheduler that was seen.
	goroutines float64
}

func (c cost) minus(before cost) cost {
	return cost{c.refused - before.refused, c.failed - before.failed, c.patches - before.patches, c.events - before.events, c.goroutines}
}

// of returns the cost for each of some pods.
func (c cost) of(pods int) string {
	n := float64(pods)
	return fmt.Sprintf("for each of %d pods %.2f attempts refused, %.2f failed, %.2f PATCHes, %.2f events; at most %.0f goroutines",
		pods, c.refused/n, c.failed/n, c.patches/n, c.events/n, c.goroutines)
}

// cost returns what was counted since the start of the programs.
func (l *lab) cost(t *testing.T, scheduler *program) (c cost) {
	t.Helper()
	of := l.measured(t, scheduler)
	for _, reason := range []string{"share", "back_off"} {
		c.refused += of("refused_scheduling_attempts_total", "reason", reason)
	}
	c.failed = of("scheduler_schedule_attempts_total", "result", "unschedulable")
	ofServer := l.costOfServer(t)
	c.patches, c.events = ofServer.patches, ofServer.events
	return c
}

// costOfServer returns what the API server has counted since it started.
func (l *lab) costOfServer(t *testing.T) (c cost) {
	t.Helper()
	content, err := l.ControlPlane.Client().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	of := sums(t, content)
	c.patches = of("apiserver_request_total", "resource", "pods", "subresource", "status", "verb", "PATCH")
	c.events = of("apiserver_request_total", "resource", "events", "verb", "POST") + of("apiserver_request_total", "resource", "events", "verb", "PATCH")
	return c
}

// measured returns the metrics of a program.
func (l *lab) measured(t *testing.T, p *program) func(name string, labels ...string) float64 {
	t.Helper()
	content, err := p.process.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	return sums(t, content)
}

// sums reads metrics. The function that it returns adds up those with a name, which may lack its prefix, and with labels,
// which are given as names and values.
func sums(t *testing.T, content []byte) func(name string, labels ...string) float64 {
	t.Helper()
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	require.NoError(t, err)
	return func(name string, labels ...string) (sum float64) {
		for family, metrics := range families {
			if !strings.HasSuffix(family, name) {
				continue
			}
			for _, metric := range metrics.GetMetric() {
				has := map[string]string{}
				for _, pair := range metric.GetLabel() {
					has[pair.GetName()] = pair.GetValue()
				}
				matches := true
				for i := 0; i < len(labels); i += 2 {
					matches = matches && has[labels[i]] == labels[i+1]
				}
				if matches {
					sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
				}
			}
		}
		return sum
	}
}

// siege has mallory create pods that wait, and alice schedule a pod again and again until each of mallory's pods has a condition,
// at least so often. It returns how long alice's pods took, in ascending order, and what mallory's cost.
func (l *lab) siege(t *testing.T, scheduler *program, rounds int, create func()) (took []time.Duration, total cost) {
	t.Helper()
	before := l.cost(t, scheduler)
	most := l.watchGoroutines(t, scheduler)
	created := make(chan struct{})
	go func() {
		defer close(created)
		create()
	}()
	for end := time.Now().Add(5 * time.Minute); ; {
		took = append(took, l.scheduleOnce(t))
		if len(took) < rounds || len(took)%5 != 0 {
			continue
		}
		select {
		case <-created:
			if l.allAreTold(t) {
				slices.Sort(took)
				total = l.cost(t, scheduler).minus(before)
				// Alice's pods have an event each.
				total.events -= float64(len(took))
				total.goroutines = most()
				return took, total
			}
		default:
		}
		require.True(t, time.Now().Before(end), "whoever waits is told why")
	}
}

// scheduleOnce returns how long one more pod of alice's takes to be bound.
func (l *lab) scheduleOnce(t *testing.T) time.Duration {
	t.Helper()
	l.bound++
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, l.schedule("plain", "default-scheduler", false)(ctx, l.bound))
	return time.Since(began)
}

// allAreTold reports whether each of mallory's pods has a condition that says why it waits.
func (l *lab) allAreTold(t *testing.T) bool {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, l.admin.List(t.Context(), pods, client.InNamespace(unchecked)))
	return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Spec.NodeName == "" && !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled && c.Message != "" })
	})
}

// watchGoroutines counts the goroutines of a program again and again, until the function that it returns is called.
func (l *lab) watchGoroutines(t *testing.T, p *program) (most func() float64) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	largest := 0.0
	all.Go(func() {
		for {
			if content, err := p.process.Get(context.WithoutCancel(t.Context()), "/metrics"); err == nil {
				largest = max(largest, sums(t, content)("go_goroutines"))
			}
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	return func() float64 {
		close(stop)
		all.Wait()
		return largest
	}
}

// clear removes all that mallory has created, and waits until it is gone.
func (l *lab) clear(t *testing.T) {
	t.Helper()
	require.NoError(t, l.admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(unchecked), client.GracePeriodSeconds(0)))
	claims := &resourceapi.ResourceClaimList{}
	require.NoError(t, l.admin.List(t.Context(), claims, client.InNamespace(unchecked)))
	for i := range claims.Items {
		require.NoError(t, l.removeClaim(t.Context(), unchecked, claims.Items[i].Name))
	}
	require.Eventually(t, func() bool {
		pods := &corev1.PodList{}
		return l.admin.List(t.Context(), pods, client.InNamespace(unchecked)) == nil && len(pods.Items) == 0
	}, time.Minute, 100*time.Millisecond)
	// A scheduler writes fifty events a second. Those that are still to be written are not counted for what follows.
	written := -1.0
	require.Eventually(t, func() bool {
		before := written
		written = l.costOfServer(t).events
		return written == before
	}, time.Minute, time.Second)
}

// create makes objects of mallory's, some at a time.
func (l *lab) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	const workers = 16
	var all sync.WaitGroup
	errs := make([]error, len(objects))
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < len(objects); i += workers {
				errs[i] = l.mallory.Create(t.Context(), objects[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func written(sorted []time.Duration) string {
	return fmt.Sprintf("%s in the middle and at most %s, %d times", sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond), len(sorted))
}
