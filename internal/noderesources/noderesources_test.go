// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package noderesources_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/celset/celset/internal/noderesources"
)

func list(pairs ...string) corev1.ResourceList {
	result := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		result[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return result
}

// generator generates nodes and pods. The amounts are so small that about half of the pods fit.
type generator struct{ *rand.Rand }

func (g generator) amounts() corev1.ResourceList {
	result := corev1.ResourceList{}
	for name, values := range map[corev1.ResourceName][]string{
		corev1.ResourceCPU:              {"0", "1m", "250m", "0.5", "1", "2"},
		corev1.ResourceMemory:           {"0", "1", "1Ki", "64Mi", "1Gi", "1G"},
		corev1.ResourceEphemeralStorage: {"1Mi", "1Gi"},
		"example.com/gpu":               {"0", "1", "2"},
		"hugepages-2Mi":                 {"2Mi", "4Mi"},
	} {
		if g.IntN(3) == 0 {
			result[name] = resource.MustParse(values[g.IntN(len(values))])
		}
	}
	return result
}

func (g generator) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: g.amounts()}}
	if g.IntN(4) == 0 {
		c.Ports = []corev1.ContainerPort{{
			HostPort: int32(8080 + g.IntN(2)), HostIP: []string{"", "0.0.0.0", "10.0.0.1", "10.0.0.2"}[g.IntN(4)],
			Protocol: []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP}[g.IntN(3)],
		}}
	}
	return c
}

func (g generator) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	for i := range 1 + g.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, g.container(fmt.Sprint("c", i)))
	}
	for i := range g.IntN(3) {
		c := g.container(fmt.Sprint("i", i))
		if g.IntN(2) == 0 {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	if g.IntN(4) == 0 {
		pod.Spec.Overhead = list("cpu", "100m", "memory", "16Mi")
	}
	if g.IntN(4) == 0 {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")}
	}
	return pod
}

// TestSameAsTheScheduler compares Lacks with the results of kube-scheduler's plugins.
func TestSameAsTheScheduler(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 2))}
	fitting := 0
	const cases = 5000
	for i := range cases {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: list(
			"cpu", []string{"1", "2500m", "4"}[g.IntN(3)], "memory", []string{"1Gi", "2Gi", "4G"}[g.IntN(3)],
			"ephemeral-storage", "2Gi", "example.com/gpu", fmt.Sprint(g.IntN(5)), "hugepages-2Mi", "8Mi", "pods", fmt.Sprint(1+g.IntN(4)))}}
		info := framework.NewNodeInfo()
		info.SetNode(node)
		var there []*corev1.Pod
		for j := range g.IntN(4) {
			pod := g.pod(fmt.Sprint("p", j))
			if pod.Spec.NodeName = "n"; g.IntN(5) == 0 {
				// The scheduler ignores pods that have ended.
				pod.Status.Phase = corev1.PodSucceeded
			} else {
				info.AddPod(pod)
			}
			there = append(there, pod)
		}
		pod := g.pod("new")
		var want []string
		for _, lacking := range upstream.Fits(pod, info, nil, upstream.ResourceRequestsOptions{EnablePodLevelResources: true}) {
			want = append(want, lacking.Reason)
		}
		if !nodeports.Fits(pod, info) {
			want = append(want, noderesources.PortsInUse)
		}
		got := noderesources.Free(node, there).Lacks(noderesources.Requests(pod))
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got, "case %d", i)
		if len(got) == 0 {
			fitting++
		}
	}
	require.Greater(t, fitting, cases/10)
	require.Less(t, fitting, cases*9/10)
}

// TestDelegate checks that Lacks ignores extended resources of a DeviceClass, unless a device plugin provides them.
func TestDelegate(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("example.com/gpu", "2")}}}}}
	need := noderesources.Requests(pod)
	for have, want := range map[string][]string{"0": nil, "1": {"Insufficient example.com/gpu"}, "2": nil} {
		room := noderesources.Free(&corev1.Node{Status: corev1.NodeStatus{Allocatable: list("pods", "1", "example.com/gpu", have)}}, nil)
		room.Delegate(func(name corev1.ResourceName) bool { return name == "example.com/gpu" })
		require.Equal(t, want, room.Lacks(need), "a node that has %s", have)
	}
}

func TestPods(t *testing.T) {
	need := noderesources.Requests(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "300m")}}}}})
	room := noderesources.Free(&corev1.Node{Status: corev1.NodeStatus{Allocatable: list("pods", "10", "cpu", "1")}}, nil)
	require.Equal(t, 3, room.Pods(need, 10))
	require.Equal(t, 2, room.Pods(need, 2))
	require.Empty(t, room.Lacks(need), "nothing was taken")
	room.Take(need)
	require.Equal(t, 2, room.Pods(need, 10))
}
