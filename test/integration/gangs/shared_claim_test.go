// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/test/internal/env"
)

// TestPodsOfAGroupShareAClaim binds the pods of a group concurrently. Each binding writes the claim that they share. With
// upstream's plugin, all pods but one fail once because the claim was allocated in the meantime. Then they fail up to four
// times because of conflicts (kubernetes/kubernetes#140053).
func TestPodsOfAGroupShareAClaim(t *testing.T) {
	pods := cases.Of(20, 100)
	l := newLab(t, "shared-claim", 1)
	group := "shared"
	env.Create(t, l.Client().SchedulingV1beta1().PodGroups(l.Namespace), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: group}, Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(pods)}},
		},
	})
	l.CreateClaim(t, group, l.inARow(2)...)
	var creating errgroup.Group
	creating.SetLimit(atOnce)
	names := make([]string, pods)
	for i := range pods {
		names[i] = fmt.Sprintf("%s-%d", group, i)
		pod := env.Pod(names[i], env.CelsetProfile, group)
		pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		creating.Go(func() error {
			_, err := l.Client().CoreV1().Pods(l.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, creating.Wait())
	l.RequireRunning(t, names...)
	claim := l.Claim(t, group)
	require.Len(t, claim.Status.ReservedFor, pods)
	require.True(t, wiring.Contiguous(l.ring, env.DeviceNames(claim)))

	failed := l.failedBindings(t, pods)
	t.Logf("%d pods, %d of them failed to be bound at first", pods, len(failed))
	for name, times := range failed {
		require.LessOrEqual(t, times, 1, "pod %s failed to be bound %d times", name, times)
	}
}

// failedBindings returns how often the binding of each pod has failed. Because the scheduler sends events in order, all
// failures of a pod are known once its event Scheduled exists.
func (l *lab) failedBindings(t *testing.T, pods int) map[string]int {
	t.Helper()
	var failed map[string]int
	env.Eventually(t, "all pods have an event that they are scheduled", func(ctx context.Context) (string, error) {
		events, err := l.Client().EventsV1().Events(l.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		failed = map[string]int{}
		scheduled := 0
		for i := range events.Items {
			switch event := &events.Items[i]; {
			case event.Reason == "Scheduled":
				scheduled++
			case event.Reason == "FailedScheduling" && isOfBinding(event.Note):
				failed[event.Regarding.Name] += timesOf(event)
			}
		}
		if scheduled < pods {
			return fmt.Sprintf("%d of %d are", scheduled, pods), nil
		}
		return "", nil
	})
	return failed
}

// isOfBinding reports whether an event's note is about a failure after the scheduler had chosen a node.
func isOfBinding(note string) bool {
	return strings.Contains(note, "PreBind") || strings.Contains(note, "in the meantime") || strings.Contains(note, "has been modified")
}

func timesOf(event *eventsv1.Event) int {
	if event.Series == nil {
		return 1
	}
	return int(event.Series.Count)
}
