// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/test/internal/env"
)

// TestExplainAgreesWithTheScheduler creates a group for each reason to wait, and a group that runs. explain must answer yes
// only for the group that runs, and the scheduler must bind no pod of the other groups.
func TestExplainAgreesWithTheScheduler(t *testing.T) {
	l := newNodes(t, "explained", 4, rack(2))
	const oneRack = "nodes.map(n, n.labels.rack).distinct().size() == 1"
	high := l.CreatePriorityClass(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "explained-"}, Value: 1000})
	polite := l.CreatePriorityClass(t, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "explained-"}, PreemptionPolicy: ptr.To(corev1.PreemptNever),
	})
	refused := map[string]string{}
	wait := func(name, reason string, minCount, pods int, edit ...func(*corev1.Pod)) {
		for _, member := range l.group(t, name, oneRack, "", minCount, pods, edit...) {
			refused[member] = reason
		}
		require.Contains(t, l.celset(t, cli.ExitNegative, "explain", "podgroup/"+name), reason)
	}
	at := func(name string, edit func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			if pod.Name == name {
				edit(pod)
			}
		}
	}
	wait("few", "minCount is 3", 3, 2)
	wait("schedulers", "spec.schedulerName", 2, 2, at("schedulers-1", func(pod *corev1.Pod) { pod.Spec.SchedulerName = env.StockProfile }))
	wait("priorities", "spec.priority is 1000 in pod priorities-0", 2, 2, at("priorities-0", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = high.Name }))
	wait("policies", "spec.preemptionPolicy is Never in pod policies-1", 2, 2, at("policies-1", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = polite.Name }))
	wait("large", "Insufficient cpu", 2, 2, whole, whole, func(pod *corev1.Pod) { pod.Spec.InitContainers = append(pod.Spec.InitContainers, sidecarOf(pod)) })
	wait("wide", "no set of 3 nodes", 3, 3, whole)
	wait("claims", "there is no ResourceClaim", 2, 2, uses("nothing"))
	wait("gated", "spec.schedulingGates", 2, 2, func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
	})

	// Groups whose pods need matching devices: on no node are enough devices for a pod; on no set of nodes do the devices
	// match; on some nodes the devices match.
	driver := l.Ring(t, 8).Drivers()[0]
	devices := func(name, expression, reason string, count int64) {
		for _, member := range l.group(t, name, expression, "", 2, 2, l.wants(t, driver, count)) {
			refused[member] = reason
		}
		require.Contains(t, l.celset(t, cli.ExitNegative, "explain", "podgroup/"+name), reason)
	}
	devices("rails", sameRails(driver), "8 of 9 requested", 9)
	devices("distant", fmt.Sprintf("nodes.map(n, %s.sum()).sum() > 100", railsOf(driver, "n")), "no set of 2 nodes", 2)
	matching := l.group(t, "matching", sameRails(driver), "", 2, 2, l.wants(t, driver, 3))
	l.RequireRunning(t, matching...)
	l.celset(t, cli.ExitOK, "explain", "podgroup/matching")

	runs := l.group(t, "runs", oneRack, "", 2, 2, whole)
	l.RequireRunning(t, runs...)
	l.celset(t, cli.ExitOK, "explain", "podgroup/runs")
	for name, reason := range refused {
		require.Empty(t, l.Pod(t, name).Spec.NodeName, "%s, %s", name, reason)
	}
}

// sidecarOf returns a sidecar that requests as much as the pod. Pod and sidecar together need more than a node has.
func sidecarOf(pod *corev1.Pod) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Container{Name: "sidecar", Image: pod.Spec.Containers[0].Image, RestartPolicy: &always, Resources: *pod.Spec.Containers[0].Resources.DeepCopy()}
}
