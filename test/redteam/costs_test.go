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

// A cost adds up the work that waiting pods cause: in the scheduler, and in the API server by the scheduler's requests.
type cost struct {
	// refused is the number of scheduling attempts that the fairness guard has rejected. failed is the number of all attempts
	// that found no node.
	refused, failed float64
	// patches is the number of writes of pod conditions. events is the number of writes of events.
	patches, events float64
	// goroutines is the largest number of goroutines that the scheduler had.
	goroutines float64
}

func (c cost) minus(before cost) cost {
	return cost{c.refused - before.refused, c.failed - before.failed, c.patches - before.patches, c.events - before.events, c.goroutines}
}

// of formats the cost divided by the number of pods.
func (c cost) of(pods int) string {
	n := float64(pods)
	return fmt.Sprintf("for each of %d pods %.2f attempts refused, %.2f failed, %.2f PATCHes, %.2f events; at most %.0f goroutines",
		pods, c.refused/n, c.failed/n, c.patches/n, c.events/n, c.goroutines)
}

// cost returns the sums since the start of the scheduler and of the API server.
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

// costOfServer returns the sums since the start of the API server.
func (l *lab) costOfServer(t *testing.T) (c cost) {
	t.Helper()
	content, err := l.ControlPlane.Client().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	of := sums(t, content)
	c.patches = of("apiserver_request_total", "resource", "pods", "subresource", "status", "verb", "PATCH")
	c.events = of("apiserver_request_total", "resource", "events", "verb", "POST") + of("apiserver_request_total", "resource", "events", "verb", "PATCH")
	return c
}

// measured reads the metrics of a program. The returned function looks up a metric, like the result of sums.
func (l *lab) measured(t *testing.T, p *program) func(name string, labels ...string) float64 {
	t.Helper()
	content, err := p.process.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	return sums(t, content)
}

// sums parses metrics. The returned function adds up the samples of a metric that have the given label names and values. The
// name of the metric may omit its prefix.
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

// siege makes mallory create pods that wait. At the same time, alice has at least rounds pods scheduled, and continues until
// each of mallory's pods has a condition. siege returns the sorted scheduling times of alice's pods, and the cost of mallory's
// pods.
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
			if l.allHaveReasons(t) {
				slices.Sort(took)
				total = l.cost(t, scheduler).minus(before)
				// Subtract one event for each of alice's pods.
				total.events -= float64(len(took))
				total.goroutines = most()
				return took, total
			}
		default:
		}
		require.True(t, time.Now().Before(end), "whoever waits is told why")
	}
}

// scheduleOnce creates a pod of alice, and returns the time until it is bound.
func (l *lab) scheduleOnce(t *testing.T) time.Duration {
	t.Helper()
	l.bound++
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, l.schedule("plain", "default-scheduler", false)(ctx, l.bound))
	return time.Since(began)
}

// allHaveReasons reports whether each of mallory's pods has a condition with a reason why it waits.
func (l *lab) allHaveReasons(t *testing.T) bool {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, l.admin.List(t.Context(), pods, client.InNamespace(unchecked)))
	return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Spec.NodeName == "" && !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled && c.Message != "" })
	})
}

// watchGoroutines reads the number of a program's goroutines repeatedly, until most is called. most returns the largest number.
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

// clear deletes all objects of mallory, and waits until they are gone.
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
	// A scheduler writes at most fifty events a second. Wait until it has written all pending events, so that they are not
	// counted in the next test.
	written := -1.0
	require.Eventually(t, func() bool {
		before := written
		written = l.costOfServer(t).events
		return written == before
	}, time.Minute, time.Second)
}

// create creates objects as mallory, several at a time.
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
