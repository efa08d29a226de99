// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
)

// TestGangsDoNotGetHeldDevices creates two gangs while devices are held for a preemptor. One gang uses the claim of the evicted
// pod. The other needs the held devices, which are free. Both must wait until the preemptor has run and ended.
func TestGangsDoNotGetHeldDevices(t *testing.T) {
	restartScheduler(cluster(t), func() {}, "CelsetDevicePreemption")
	t.Cleanup(func() { restartScheduler(cluster(t), func() {}) })
	l := newLab(t, "held", 1)
	l.priority(t, "high", 1000)
	l.CreateClaim(t, "victim", l.inARow(1)...)
	l.preemptible(t, "victim", "", "victim")
	l.RequireRunning(t, "victim")
	l.CreateClaim(t, "job", l.inARow(8)...)
	l.preemptible(t, "job", "high", "job")
	l.EventuallyPod(t, "victim", "ending", func(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.DeletionTimestamp != nil, nil })

	joiners := l.gangOn(t, "joins", "victim", 2)
	others := l.gang(t, "others", 2, 2)
	waiting := append(joiners, others...)
	for _, name := range waiting {
		l.EventuallyPod(t, name, "refused or bound", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return pod.Spec.NodeName != "" || env.IsRefused(pod), nil
		})
		require.Empty(t, l.Pod(t, name).Spec.NodeName, "%s got devices that are held", name)
	}
	l.DeletePod(t, "victim")
	l.RequireRunning(t, "job")
	for _, name := range waiting {
		require.Empty(t, l.Pod(t, name).Spec.NodeName, name)
	}
	l.end(t, "job")
	l.RequireRunning(t, waiting...)
}

// priority creates a PriorityClass for this lab.
func (l *lab) priority(t *testing.T, name string, value int32) {
	t.Helper()
	l.CreatePriorityClass(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace + "-" + name}, Value: value})
}

// preemptible creates a pod that stays after its eviction until the test ends it.
func (l *lab) preemptible(t *testing.T, name, priority, claim string) {
	t.Helper()
	pod := env.Pod(name, env.CelsetProfile, claim)
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
	if priority != "" {
		pod.Spec.PriorityClassName = l.Namespace + "-" + priority
	}
	l.CreatePodAsIs(t, pod)
}

// gangOn creates a PodGroup, and pods that all use the claim.
func (l *lab) gangOn(t *testing.T, name, claim string, pods int) []string {
	t.Helper()
	l.podGroup(t, name, pods)
	var members []string
	for i := range pods {
		members = append(members, l.memberOf(t, name, i, claim))
	}
	return members
}
