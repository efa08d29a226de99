// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/env"
)

// TestOtherNamespacesGoFirst has a namespace with many pods whose searches take as long as
// they are allowed to, each with a claim of its own and each on its own. Pods of another
// namespace that come after all of them don't wait for them.
func TestOtherNamespacesGoFirst(t *testing.T) {
	t.Parallel()
	const hostile, others = 40, 10
	bad, good := newLab(t, "greedy", 1), newLab(t, "modest", 1)
	badDriver, goodDriver := bad.Ring(t, 32).Drivers()[0], good.Ring(t, 32).Drivers()[0]
	// No square leaves 3 when divided by 7, which no reading of the expression tells.
	sum := fmt.Sprintf("devices.map(d, d.attributes[%q].index).sum()", badDriver)
	for i := range hostile {
		name := fmt.Sprintf("greedy-%d", i)
		bad.Run(t, name, env.CelsetProfile, env.Request("mla", badDriver, 16), env.Constrained("square", fmt.Sprintf("(%[1]s * %[1]s) %% 7 == 3 && %[2]d >= 0", sum, i)))
	}
	bad.RequireRefused(t, "greedy-0")

	var took []time.Duration
	for i := range others {
		name := fmt.Sprintf("modest-%d", i)
		start := time.Now()
		good.Run(t, name, env.CelsetProfile, env.Request("mla", goodDriver, 2), env.Constrained("pair", env.Contiguous(goodDriver, 2)))
		good.EventuallyPod(t, name, "scheduled", func(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.Spec.NodeName != "", nil })
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("pods of the other namespace were scheduled within %v, half of them within %v", took[others-1], took[others/2])
	if cases.Nightly() {
		require.Less(t, took[others/2], 5*time.Second)
	}

	// Of the greedy ones, none has devices, and some were told to wait.
	env.Eventually(t, "greedy pods wait for their turn", func(ctx context.Context) (string, error) {
		pods, err := client().CoreV1().Pods(bad.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		require.Len(t, pods.Items, hostile)
		putOff := 0
		for _, pod := range pods.Items {
			require.Empty(t, pod.Spec.NodeName)
			if env.IsRefused(&pod, "pods of namespace "+bad.Namespace+" took more than 20 percent of the scheduler's time") ||
				env.IsRefused(&pod, "taking too much of the scheduler's time, ", "tried again at ") {
				putOff++
			}
		}
		if putOff == 0 {
			return "none does", nil
		}
		t.Logf("%d of %d greedy pods were put off", putOff, hostile)
		return "", nil
	})
}

// TestClaimThatBacksOffIsTriedAgain has a claim that is over budget, and nothing else happens.
// It is tried again and again, each time later. The scheduler's own back-off after an error, up
// to ten seconds, is the longer one the first four times.
func TestClaimThatBacksOffIsTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "again", 1)
	driver := l.Ring(t, 16).Drivers()[0]
	l.Run(t, "again", frugalProfile, env.Request("mla", driver, 4),
		env.Constrained("unread", fmt.Sprintf("devices.slice(0, 1).map(d, d.attributes[%q].index).size() == 2", driver)))
	for _, times := range []int{5, 6} {
		l.EventuallyPod(t, "again", fmt.Sprintf("refused for the %d. time", times), func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return env.IsRefused(pod, fmt.Sprintf("taking too much of the scheduler's time, %d times in a row: tried again at ", times),
				"the evaluations together exceed the cost budget of "), nil
		})
	}
}
