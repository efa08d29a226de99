// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
)

// inWave is the number of pods that become schedulable at the same moment.
const inWave = 300

// wave returns inWave pods that use the claim. A tenant can create that many pods within a few seconds.
func wave(claim string) (pods []client.Object) {
	for i := range inWave {
		pods = append(pods, pod(unchecked, fmt.Sprintf("wave-%d", i), "celset-scheduler", claim))
	}
	return pods
}

// worstFor repeatedly creates a pod of alice for the duration lasts. It returns the longest time until such a pod was bound.
func (l *lab) worstFor(t *testing.T, lasts time.Duration) (worst time.Duration) {
	t.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		worst = max(worst, l.scheduleOnce(t))
	}
	return worst
}

// TestPodsOfOneClaimAreNotRefusedEachTime creates many pods that use one claim, whose search takes too long. When the claim's
// back-off ends, the scheduler must not try and reject the pods one by one, each with a new condition.
func TestPodsOfOneClaimAreNotRefusedEachTime(t *testing.T) {
	cases.OnlyNightly(t, "takes minutes; the tests of plugin/guard count the same")
	l := startLab(t)
	scheduler := l.scheduler()
	scheduler.run(t)
	alone := l.worstFor(t, 5*time.Second)
	require.NoError(t, l.mallory.Create(t.Context(), claim(unchecked, "heavy", 8, heavyTexts(0)...)))
	l.create(t, wave("heavy")...)
	worst := l.worstFor(t, time.Minute)
	refused := l.cost(t, scheduler).refused
	t.Logf("%.0f attempts of %d pods refused; alice's pod took up to %s, alone %s", refused, inWave, worst, alone)
	require.LessOrEqual(t, refused, float64(2*inWave))
}

// TestPodsThatBecomeReadyTogether creates many pods that become schedulable at one moment: first when their missing claim is
// created, later when a pod is deleted that might have had devices. Alice's pods must not wait for all of them.
func TestPodsThatBecomeReadyTogether(t *testing.T) {
	cases.OnlyNightly(t, "takes minutes; the tests of plugin/guard count the same")
	l := startLab(t)
	scheduler := l.scheduler()
	scheduler.run(t)
	alone := l.worstFor(t, 5*time.Second)
	l.create(t, wave("light")...)
	// First wait until each pod has the condition that its claim is missing.
	l.worstFor(t, 20*time.Second)
	require.NoError(t, l.mallory.Create(t.Context(), claim(unchecked, "light", 2, "devices.size() == 3")))
	worst := l.worstFor(t, 20*time.Second)
	const events = 5
	for i := range events {
		seated := pod(unchecked, fmt.Sprintf("seated-%d", i), "celset-scheduler", "missing")
		seated.Spec.NodeName = "node-0"
		require.NoError(t, l.mallory.Create(t.Context(), seated))
		require.NoError(t, client.IgnoreNotFound(l.mallory.Delete(t.Context(), seated, client.GracePeriodSeconds(0))))
		worst = max(worst, l.worstFor(t, 15*time.Second))
	}
	refused := l.cost(t, scheduler).refused
	t.Logf("%.0f attempts of %d pods refused; alice's pod took up to %s, alone %s", refused, inWave, worst, alone)
	pods := &corev1.PodList{}
	require.NoError(t, l.admin.List(t.Context(), pods, client.InNamespace(unchecked)))
	require.Len(t, pods.Items, inWave)
	require.LessOrEqual(t, refused, float64(2*inWave), "they wait in line instead")
}
