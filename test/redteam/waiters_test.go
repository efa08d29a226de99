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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/redteam"
)

// TestPodsThatWaitCostNothing: mallory has claims that take the scheduler's time, and many pods that wait behind them. Their
// refused attempts, and what is written for them, are constants for each pod, however long they wait. Alice's pods are
// bound meanwhile.
func TestPodsThatWaitCostNothing(t *testing.T) {
	heavy, light, rounds := 10, 60, 30
	if cases.Nightly() {
		heavy, light, rounds = 40, 400, 200
	}
	l := startLab(t)
	scheduler := l.scheduler()
	scheduler.run(t)
	schedule := l.schedule("plain", "default-scheduler", false)
	alone := l.delays(t, schedule, rounds, 0)

	require.NoError(t, l.mallory.Create(t.Context(), claim(unchecked, "light", 2, "devices.size() == 3")))
	for i := range heavy {
		name := fmt.Sprintf("heavy-%d", i)
		require.NoError(t, l.mallory.Create(t.Context(), claim(unchecked, name, 8, heavyTexts(i)...)))
		require.NoError(t, l.mallory.Create(t.Context(), pod(unchecked, name, "celset-scheduler", name)))
	}
	for i := range light {
		require.NoError(t, l.mallory.Create(t.Context(), pod(unchecked, fmt.Sprintf("light-%d", i), "celset-scheduler", "light")))
	}
	meanwhile := l.delays(t, schedule, rounds, rounds)
	// Whatever waits is told why.
	require.Eventually(t, func() bool {
		pods := &corev1.PodList{}
		require.NoError(t, l.admin.List(t.Context(), pods, client.InNamespace(unchecked)))
		return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled && c.Message != "" })
		})
	}, 5*time.Minute, 100*time.Millisecond)
	refused := l.counted(t, scheduler, "refused_scheduling_attempts_total", "reason", "share")
	attempts := l.counted(t, scheduler, "scheduler_schedule_attempts_total", "result", "unschedulable")
	t.Logf("%d heavy and %d light pods: %.0f attempts refused for the share, %.0f failed in all; alice's pods took %s, alone %s",
		heavy, light, refused, attempts, written(meanwhile), written(alone))
	require.LessOrEqual(t, refused, float64(2*(heavy+light)))
	_, ended := scheduler.hasEnded()
	require.False(t, ended)
}

// heavyTexts are constraints that no set satisfies and that are tried on many sets.
func heavyTexts(number int) (texts []string) {
	search := slices.DeleteFunc(redteam.Cases(), func(c redteam.Case) bool { return !c.Is(redteam.Search) })
	for i := range 30 {
		texts = append(texts, fmt.Sprintf("(%s) || '%d' == ''", search[i%len(search)].Text, 30*number+i))
	}
	return texts
}

// delays are how long alice's pods take to be bound, in ascending order.
func (l *lab) delays(t *testing.T, schedule func(context.Context, int) error, rounds, from int) []time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range rounds {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		require.NoError(t, schedule(ctx, from+i))
		cancel()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

func written(sorted []time.Duration) string {
	return fmt.Sprintf("%s in the middle and at most %s", sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond))
}

// counted is the sum of a counter of a program, of those with a label. The name may lack its prefix.
func (l *lab) counted(t *testing.T, p *program, name, label, value string) (sum float64) {
	t.Helper()
	content, err := p.process.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	require.NoError(t, err)
	for family, metrics := range families {
		if !strings.HasSuffix(family, name) {
			continue
		}
		for _, metric := range metrics.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if pair.GetName() == label && pair.GetValue() == value {
					sum += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}
