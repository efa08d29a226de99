// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
)

// cpus returns a function that makes a pod request n CPUs.
func cpus(n int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}
	}
}

// leave creates pods on the nodes, so that left[i] of the 64 CPUs stay free on the i-th node.
func (l *nodes) leave(t *testing.T, left ...int) {
	t.Helper()
	for i, n := range left {
		if n == 64 {
			continue
		}
		pod := env.Pod(fmt.Sprintf("leaves-%d", i), env.CelsetProfile)
		pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = l.Nodes[i], ptr.To[int64](0)
		cpus(64 - n)(pod)
		l.CreatePodAsIs(t, pod)
	}
}

// TestEachNodeOfTheSetGetsAPod creates three pods that would all fit on the first node. The expression wants nodes in three
// racks, so each node must get a pod.
func TestEachNodeOfTheSetGetsAPod(t *testing.T) {
	l := newNodes(t, "each", 3, rack(1))
	l.leave(t, 64, 4, 4)
	got := l.on(t, l.group(t, "each", "nodes.map(n, n.labels.rack).distinct().size() == 3", "podsPerNode: 2\n", 3, 3, cpus(2))...)
	require.Equal(t, []int{0, 1, 2}, got)
}

// TestPodThatComesLaterGoesToAnotherNode creates a second pod when the first one runs. The expression wants two nodes, so the
// second pod must go to another node.
func TestPodThatComesLaterGoesToAnotherNode(t *testing.T) {
	l := newNodes(t, "later", 3, rack(1))
	members := l.group(t, "later", "nodes.size() == 2", "podsPerNode: 2\n", 1, 2, cpus(2), func(pod *corev1.Pod) {
		if pod.Name == "later-0" {
			pod.Spec.NodeName = l.Nodes[0]
		}
	})
	require.Equal(t, []int{0, 1}, l.on(t, members...))
}

// TestNodeWithRoomForAll wants one node for all pods of a group. The first node has space for only one pod, so the scheduler
// must choose another node.
func TestNodeWithRoomForAll(t *testing.T) {
	l := newNodes(t, "room", 2, rack(1))
	l.leave(t, 1, 4)
	require.Equal(t, []int{1, 1}, l.on(t, l.group(t, "room", "nodes.size() == 1", "podsPerNode: 2\n", 2, 2, cpus(1))...))
}

// TestLeaderAndWorkers creates five pods that fit on three different nodes in only one way. The scheduler must find this way
// for any order of creation.
func TestLeaderAndWorkers(t *testing.T) {
	for name, leader := range map[string]int{"first": 0, "last": 4} {
		t.Run(name, func(t *testing.T) {
			l := newNodes(t, "leader-"+name, 3, rack(3))
			l.leave(t, 2, 4, 3)
			i := 0
			members := l.group(t, name, oneRack, "podsPerNode: 2\n", 5, 5, func(pod *corev1.Pod) {
				if cpus(2)(pod); i == leader {
					cpus(1)(pod)
				}
				i++
			})
			require.Equal(t, []int{0, 1, 1, 2, 2}, l.on(t, members...))
			require.Equal(t, l.Nodes[2], l.Pod(t, members[leader]).Spec.NodeName)
		})
	}
}

// TestAnyPodsThatFit creates a group of two pods that needs only one. The first pod fits on no node, so the second one must
// run.
func TestAnyPodsThatFit(t *testing.T) {
	l := newNodes(t, "any", 1, rack(1))
	members := l.group(t, "any", "nodes.size() == 1", "", 1, 2, func(pod *corev1.Pod) {
		if pod.Name == "any-0" {
			pod.Spec.NodeSelector["rack"] = "none"
		}
	})
	require.Equal(t, []int{0}, l.on(t, members[1]))
	l.requireRefused(t, members[0])
}

// TestHalvesInPlaceOfOneWhole creates two pods whose claims prefer a whole card, or else a half. There is only one card, so
// each pod must get a half.
func TestHalvesInPlaceOfOneWhole(t *testing.T) {
	l := newNodes(t, "halves", 1, rack(1))
	driver := "card." + l.Namespace + ".example.com"
	l.publishCard(t, driver)
	members := l.group(t, "halves", oneRack, "podsPerNode: 2\n", 2, 2, func(pod *corev1.Pod) {
		l.CreateClaim(t, pod.Name, wholeOrHalf(driver))
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "part", ResourceClaimName: ptr.To(pod.Name)}}
	})
	l.on(t, members...)
	devices := slices.Concat(l.DevicesOf(t, members[0]), l.DevicesOf(t, members[1]))
	slices.Sort(devices)
	require.Equal(t, []string{"half-0", "half-1"}, devices)
}

// TestAssignmentsAreWhatRuns creates random groups on random nodes. kubectl must predict whether they run, and the expression
// must be true for the nodes of the pods that run.
func TestAssignmentsAreWhatRuns(t *testing.T) {
	const count = 6
	l := newNodes(t, "random", count, func(i int) map[string]string {
		return map[string]string{"rack": fmt.Sprintf("r%d", i/2), "cost": strconv.Itoa(i * 7 % 5)}
	})
	total, placed := cases.Of(10, 300), 0
	draw := rapid.Custom(drawAssignment)
	for i := range total {
		if l.tryAssignment(t, fmt.Sprintf("g%d", i), draw.Example(int(cases.Seed()%1000)*1000+i)) {
			placed++
		}
	}
	t.Logf("%d of %d groups run", placed, total)
	require.Positive(t, placed)
	require.Less(t, placed, total)
}

// assignmentCase is a random group, and the number of free CPUs on each node.
type assignmentCase struct {
	left                  []int
	pods                  []int
	picky                 []bool
	perNode, minCount     int
	expression, preferred string
	wants                 func(racks map[string]int, nodes int) bool
}

func drawAssignment(t *rapid.T) assignmentCase {
	c := assignmentCase{perNode: rapid.IntRange(1, 3).Draw(t, "podsPerNode")}
	for range 6 {
		c.left = append(c.left, rapid.IntRange(0, 5).Draw(t, "left"))
	}
	for range rapid.IntRange(1, 5).Draw(t, "pods") {
		c.pods = append(c.pods, rapid.IntRange(1, 3).Draw(t, "cpus"))
		c.picky = append(c.picky, rapid.IntRange(0, 3).Draw(t, "picky") == 0)
	}
	if c.minCount = len(c.pods); rapid.IntRange(0, 2).Draw(t, "some") == 0 {
		c.minCount = rapid.IntRange(1, len(c.pods)).Draw(t, "minCount")
	}
	switch rapid.IntRange(0, 3).Draw(t, "expression") {
	case 0:
		c.expression, c.wants = oneRack, func(racks map[string]int, _ int) bool { return len(racks) == 1 }
	case 1:
		c.expression, c.wants = "nodes.map(n, n.labels.rack).distinct().size() == nodes.size()", func(racks map[string]int, nodes int) bool { return len(racks) == nodes }
	case 2:
		c.expression, c.wants = "nodes.size() == 2", func(_ map[string]int, nodes int) bool { return nodes == 2 }
	default:
		c.expression, c.wants = "nodes.map(n, n.labels.rack).distinct().size() >= 2", func(racks map[string]int, _ int) bool { return len(racks) >= 2 }
	}
	if rapid.Bool().Draw(t, "prefers") {
		c.preferred = "preference: nodes.map(n, int(n.labels.cost)).sum()\n"
	}
	return c
}

// tryAssignment creates a group whose pods have a scheduling gate, asks kubectl for a prediction, removes the gates, and
// compares the prediction with the result. It reports whether the group runs.
func (l *nodes) tryAssignment(t *testing.T, name string, c assignmentCase) (runs bool) {
	t.Helper()
	l.leave(t, c.left...)
	i := 0
	members := l.group(t, name, c.expression, fmt.Sprintf("podsPerNode: %d\n%s", c.perNode, c.preferred), c.minCount, len(c.pods), func(pod *corev1.Pod) {
		cpus(c.pods[i])(pod)
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		if c.picky[i] {
			pod.Spec.NodeSelector["rack"] = "r1"
		}
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
		i++
	})
	var predicted gang.Report
	require.NoError(t, json.Unmarshal([]byte(l.celset(t, cli.ExitNegative, "explain", "-o", "json", "podgroup/"+name)), &predicted))
	for _, pod := range members {
		_, err := l.Client().CoreV1().Pods(l.Namespace).Patch(t.Context(), pod, types.MergePatchType, []byte(`{"spec": {"schedulingGates": null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	want, nodes := map[string]string{}, map[string]bool{}
	for _, m := range predicted.Chosen {
		nodes[m.Node] = true
		for _, pod := range m.Pods {
			want[pod] = m.Node
		}
	}
	got, racks := map[string]string{}, map[string]int{}
	for _, pod := range members {
		decided := l.decided(t, pod, predicted.Wanted == len(c.pods) && c.minCount == len(c.pods))
		if decided.Spec.NodeName == "" {
			continue
		}
		got[pod] = decided.Spec.NodeName
		racks[fmt.Sprintf("r%d", slices.Index(l.Nodes, decided.Spec.NodeName)/2)]++
	}
	description := fmt.Sprintf("%+v: predicted %+v, runs %v", c, predicted.Chosen, got)
	if len(got) > 0 {
		require.True(t, c.wants(racks, len(distinct(got))), description)
	}
	if c.minCount == len(c.pods) {
		// Compare the nodes only if all pods must be placed together. Otherwise the scheduler may place some pods before the
		// last gate is removed.
		require.Equal(t, nodes, distinct(got), description)
		for pod, node := range want {
			require.Equal(t, node, got[pod], description)
		}
	}
	for _, pod := range append(members, l.fillers(c)...) {
		l.DeletePod(t, pod)
	}
	return len(got) > 0
}

func (l *nodes) fillers(c assignmentCase) (names []string) {
	for i, left := range c.left {
		if left != 64 {
			names = append(names, fmt.Sprintf("leaves-%d", i))
		}
	}
	return names
}

func distinct(nodes map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, node := range nodes {
		all[node] = true
	}
	return all
}

// decided waits until a pod is bound or rejected. If willRun is set, it waits until the pod is bound, because a rejection may
// be temporary.
func (l *nodes) decided(t *testing.T, name string, willRun bool) *corev1.Pod {
	t.Helper()
	return l.EventuallyPod(t, name, "bound or refused", func(_ context.Context, pod *corev1.Pod) (bool, error) {
		return pod.Spec.NodeName != "" || !willRun && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		}), nil
	})
}

// publishCard publishes a card on the first node. It can be allocated as a whole or as two halves.
func (l *nodes) publishCard(t *testing.T, driver string) {
	t.Helper()
	pool := resourceapi.ResourcePool{Name: l.Nodes[0], Generation: 1, ResourceSliceCount: 2}
	memory := func(n int64) map[string]resourceapi.Counter {
		return map[string]resourceapi.Counter{"memory": {Value: *resource.NewQuantity(n, resource.DecimalSI)}}
	}
	part := func(name, size string, n int64) resourceapi.Device {
		return resourceapi.Device{
			Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"size": {StringValue: &size}},
			ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: memory(n)}},
		}
	}
	for name, spec := range map[string]resourceapi.ResourceSliceSpec{
		"counters": {SharedCounters: []resourceapi.CounterSet{{Name: "card", Counters: memory(2)}}},
		"parts":    {Devices: []resourceapi.Device{part("half-0", "half", 1), part("half-1", "half", 1), part("whole", "whole", 2)}},
	} {
		spec.Driver, spec.Pool, spec.NodeName = driver, pool, &l.Nodes[0]
		cluster(t).CreateSlice(t, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace + "-" + name}, Spec: spec})
	}
	cluster(t).CreateClass(t, driver)
}

// wholeOrHalf requests a whole card, or else a half.
func wholeOrHalf(driver string) env.Part {
	return func(claim *resourceapi.DeviceClaim) {
		request := resourceapi.DeviceRequest{Name: "part"}
		for _, size := range []string{"whole", "half"} {
			request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
				Name: size, DeviceClassName: driver, Selectors: []resourceapi.DeviceSelector{env.Selector(fmt.Sprintf("device.attributes[%q].size == %q", driver, size))},
			})
		}
		claim.Requests = append(claim.Requests, request)
	}
}
