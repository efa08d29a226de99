// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
)

// In these tests, the pods of a group run on different nodes, and their devices must match. Each node has a ring of eight
// devices, which represent network interfaces. The index of a device is its rail.

func newRails(t *testing.T, name string, n int) *nodes {
	return newNodes(t, name, n, func(i int) map[string]string { return map[string]string{"leaf": fmt.Sprint(i / 2)} })
}

// railsOf returns the CEL expression for the rails of a pod's devices. n is the variable of the pod's node.
func railsOf(driver, n string) string {
	return fmt.Sprintf("%s.devices.map(d, d.attributes['%s'].index)", n, driver)
}

func sameRails(driver string) string {
	return fmt.Sprintf("nodes.all(n, %s == %s)", railsOf(driver, "n"), railsOf(driver, "nodes[0]"))
}

// uses returns a function that makes a pod use the named claims.
func uses(names ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { useAs(env.Pod(pod.Name, env.CelsetProfile, names...), pod) }
}

// useAs makes a pod use the claims of another pod.
func useAs(other, pod *corev1.Pod) {
	pod.Spec.ResourceClaims = other.Spec.ResourceClaims
	pod.Spec.Containers[0].Resources.Claims = other.Spec.Containers[0].Resources.Claims
}

// wants creates a claim for count devices, and returns a function that makes a pod use it.
func (l *nodes) wants(t *testing.T, driver string, count int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		l.CreateClaim(t, pod.Name, env.Request("nics", driver, count))
		uses(pod.Name)(pod)
	}
}

// TestSameRails uses rails 0 to 3 on the first node and rail 5 on the third. A pod alone on the second node would get rails 0
// to 3. But the pods on the first two nodes must both get rails 4 to 7. A third pod must wait until rail 5 is free.
func TestSameRails(t *testing.T) {
	l := newRails(t, "rails", 3)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	l.OccupyAs(t, env.CelsetProfile, l.Nodes[0], ring, "mla-0", "mla-1", "mla-2", "mla-3")
	last := l.OccupyAs(t, env.CelsetProfile, l.Nodes[2], ring, "mla-5")
	want := []string{"mla-4", "mla-5", "mla-6", "mla-7"}
	two := l.group(t, "two", sameRails(driver), "", 2, 2, l.wants(t, driver, 4), whole)
	require.Equal(t, []int{0, 1}, l.on(t, two...))
	for _, name := range two {
		require.Equal(t, want, l.DevicesOf(t, name))
	}
	// A third pod of the group must get the same rails, so it waits.
	third := l.member(t, "two", 2, l.wants(t, driver, 4), whole)
	l.requireRefused(t, third, "no set of 3 nodes, of which 2 already run pods of the group, satisfies constraint")
	l.DeletePod(t, last)
	l.RequireRunning(t, third)
	require.Equal(t, want, l.DevicesOf(t, third))

	l.requireRefused(t, l.group(t, "per-node", sameRails(driver), "podsPerNode: 2\n", 2, 2, l.wants(t, driver, 1))[0], "podsPerNode is 2, but the expression reads n.devices")
	l.CreateClaim(t, "shared", env.Request("nics", driver, 1))
	shared := l.group(t, "shared", sameRails(driver), "", 2, 2, uses("shared"))
	l.requireRefused(t, shared[0], "shared is used by several pods of PodGroup shared")
}

// TestPrefillAndDecode creates pods of two kinds in one group, whose nodes must be below one leaf switch. A node below the
// first leaf has too few free devices.
func TestPrefillAndDecode(t *testing.T) {
	l := newRails(t, "prefill-decode", 4)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	l.OccupyAs(t, env.CelsetProfile, l.Nodes[1], ring, "mla-0", "mla-1", "mla-2", "mla-3", "mla-4")
	n := 0
	members := l.group(t, "serve", fmt.Sprintf("nodes.all(n, n.labels.leaf == nodes[0].labels.leaf) && nodes.map(n, n.devices.size()).sum() == 12 && nodes.all(n, %[1]s[0] == %[2]s[0])",
		railsOf(driver, "n"), railsOf(driver, "nodes[0]")), "", 2, 2, func(pod *corev1.Pod) {
		whole(pod)
		n++
		l.CreateClaim(t, pod.Name, env.Request("nics", driver, int64(4*n)), env.Constrained("row", env.Contiguous(driver, 4*n)))
		uses(pod.Name)(pod)
	})
	require.Equal(t, []int{2, 3}, l.on(t, members...))
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3"}, l.DevicesOf(t, members[0]))
}

// TestRunningPodKeepsItsRails creates another pod for a group with a running pod. On the running pod's node, another pod of the
// group would fit. On the other node, the rails of the running pod are in use, so the new pods must wait.
func TestRunningPodKeepsItsRails(t *testing.T) {
	l := newRails(t, "keeps", 2)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	first := l.group(t, "keeps", sameRails(driver), "", 1, 1, l.wants(t, driver, 2))
	other := 1 - l.on(t, first...)[0]
	occupant := l.OccupyAs(t, env.CelsetProfile, l.Nodes[other], ring, "mla-0", "mla-1")
	second := l.member(t, "keeps", 1, l.wants(t, driver, 2))
	l.requireRefused(t, second, "no set of 2 nodes, of which 1 already run pods of the group, satisfies constraint")
	third := l.member(t, "keeps", 2, l.wants(t, driver, 1))
	l.requireRefused(t, third, "satisfies constraint")
	l.DeletePod(t, third)
	l.DeletePod(t, occupant)
	l.RequireRunning(t, second)
	require.Equal(t, l.DevicesOf(t, first[0]), l.DevicesOf(t, second))
}

// remote publishes n devices that are available on all nodes.
func (l *nodes) remote(t *testing.T, n int) (driver string) {
	driver = l.Family("remote").Driver
	slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, AllNodes: ptr.To(true), Pool: resourceapi.ResourcePool{Name: "remote", ResourceSliceCount: 1}}}
	slice.Name = driver
	for i := range n {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprintf("r%d", i)})
	}
	l.CreateSlice(t, slice)
	l.CreateClass(t, driver)
	return driver
}

// TestSharedDevices checks that a device that all nodes can reach goes to only one pod, unless the pods share an allocated
// claim. Pods may share a claim if the expression uses only the names of devices.
func TestSharedDevices(t *testing.T) {
	l := newNodes(t, "shares", 4, func(int) map[string]string { return map[string]string{"devices.example.com/rack": "a"} })
	driver := l.remote(t, 3)
	l.RequireRunning(t, l.group(t, "each", "nodes.all(n, n.devices.size() == 1)", "", 2, 2, l.wants(t, driver, 1))...)
	require.NotEqual(t, l.DevicesOf(t, "each-0"), l.DevicesOf(t, "each-1"))
	l.requireRefused(t, l.group(t, "more", "nodes.all(n, n.devices.size() == 1)", "", 2, 2, l.wants(t, driver, 1))[0],
		"pods on several nodes would get the same device or use the same counters of a pool that the nodes share")

	l.CreateClaim(t, "shared", env.Request("nics", driver, 1))
	l.RequireRunning(t, l.group(t, "names", "nodes.all(n, n.labels['devices.example.com/rack'] == 'a')", "", 2, 2, uses("shared"))...)
	l.RequireRunning(t, l.group(t, "shared", "nodes.all(n, n.devices.size() == 1)", "", 2, 2, uses("shared"))...)
}

// TestExtendedResources checks that the expression sees the devices that a running pod got for an extended resource.
func TestExtendedResources(t *testing.T) {
	l := newRails(t, "extended", 2)
	spec, name := env.ClassOf(l.Ring(t, 8).Drivers()[0]), "example.com/of-"+l.Namespace
	spec.ExtendedResourceName = &name
	l.CreateClassWithSpec(t, "extended-"+l.Namespace, spec)
	extended := func(pod *corev1.Pod) {
		list := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("2")}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	l.RequireRunning(t, l.group(t, "extended", "nodes.all(n, n.devices.size() == 2)", "", 1, 1, extended)...)
	l.RequireRunning(t, l.member(t, "extended", 1, extended))
}
