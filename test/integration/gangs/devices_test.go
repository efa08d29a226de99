// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/celset/celset/internal/testing/env"
)

// Stories of groups whose pods are to get devices that belong together, each on a node of its own. The devices of a ring of
// eight stand for network interfaces, the index for the rail.

func newRails(t *testing.T, name string, n int) *nodes {
	return newNodes(t, name, n, func(i int) map[string]string { return map[string]string{"leaf": fmt.Sprint(i / 2)} })
}

// railsOf are the rails of a pod.
func railsOf(driver, n string) string {
	return fmt.Sprintf("%s.devices.map(d, d.attributes['%s'].index)", n, driver)
}

func sameRails(driver string) string {
	return fmt.Sprintf("nodes.all(n, %s == %s)", railsOf(driver, "n"), railsOf(driver, "nodes[0]"))
}

// TestSameRails: of each node half of the rails are in use, those of the first before those of the others. A pod by itself would
// get the first four wherever they are free. The third pod waits until its node has the same ones.
func TestSameRails(t *testing.T) {
	l := newRails(t, "rails", 3)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	l.OccupyAs(t, env.CelsetProfile, l.Nodes[0], ring, "mla-0", "mla-1", "mla-2", "mla-3")
	last := l.OccupyAs(t, env.CelsetProfile, l.Nodes[2], ring, "mla-5")
	uses := func(count int64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			l.CreateClaim(t, pod.Name, env.Request("nics", driver, count))
			whole(pod)
			pod.Spec.ResourceClaims = env.Pod(pod.Name, env.CelsetProfile, pod.Name).Spec.ResourceClaims
			pod.Spec.Containers[0].Resources.Claims = env.Pod(pod.Name, env.CelsetProfile, pod.Name).Spec.Containers[0].Resources.Claims
		}
	}
	want := []string{"mla-4", "mla-5", "mla-6", "mla-7"}
	two := l.group(t, "two", sameRails(driver), "", 2, 2, uses(4))
	require.Equal(t, []int{0, 1}, l.on(t, two...))
	for _, name := range two {
		require.Equal(t, want, l.DevicesOf(t, name))
	}
	// Another pod of the group gets the same rails, or waits.
	third := l.member(t, "two", 2, uses(4))
	l.requireRefused(t, third, "no set of 3 nodes, 2 of them with pods of the group, satisfies it")
	l.DeletePod(t, last)
	l.RequireRunning(t, third)
	require.Equal(t, want, l.DevicesOf(t, third))

	l.requireRefused(t, l.group(t, "per-node", sameRails(driver), "podsPerNode: 2\n", 2, 2, uses(1))[0], "podsPerNode is 2, but the expression reads n.devices")
	l.CreateClaim(t, "shared", env.Request("nics", driver, 1))
	shared := l.group(t, "shared", sameRails(driver), "", 2, 2, func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = env.Pod(pod.Name, env.CelsetProfile, "shared").Spec.ResourceClaims
	})
	l.requireRefused(t, shared[0], "shared is used by several pods of PodGroup shared")
}

// TestPrefillAndDecode: pods of two kinds of one group run below one leaf, though the first leaf could take more of them.
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
		pod.Spec.ResourceClaims = env.Pod(pod.Name, env.CelsetProfile, pod.Name).Spec.ResourceClaims
		pod.Spec.Containers[0].Resources.Claims = env.Pod(pod.Name, env.CelsetProfile, pod.Name).Spec.Containers[0].Resources.Claims
	})
	require.Equal(t, []int{2, 3}, l.on(t, members...))
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3"}, l.DevicesOf(t, members[0]))
}
