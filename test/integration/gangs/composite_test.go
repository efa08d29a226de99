// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/internal/env"
)

// compositeGate is the feature gate for CompositePodGroups (groups of groups). It is off by default.
const compositeGate = "CompositePodGroup"

const (
	oneRack = "nodes.map(n, n.labels.rack).distinct().size() == 1"
	oneRow  = "nodes.map(n, n.labels.row).distinct().size() == 1"
)

// composite creates a CompositePodGroup of the given number of groups, which run all or not at all. key, if not empty, is its
// topology key. PodGroups that the test creates later become its children.
func (l *nodes) composite(t *testing.T, name, key string, groups int) {
	t.Helper()
	group := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1alpha3.CompositePodGroupSpec{
		WorkloadRef:      &schedulingv1alpha3.WorkloadReference{WorkloadName: "workload", TemplateName: "composite"},
		SchedulingPolicy: schedulingv1alpha3.CompositePodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.CompositeGangSchedulingPolicy{MinGroupCount: int32(groups)}},
	}}
	if key != "" {
		group.Spec.SchedulingConstraints = &schedulingv1alpha3.CompositePodGroupSchedulingConstraints{Topology: []schedulingv1alpha3.TopologyConstraint{{Key: key}}}
	}
	env.Create(t, l.Client().SchedulingV1alpha3().CompositePodGroups(l.Namespace), group)
	l.parent = name
}

// inRacks returns the labels of the i-th node. Each rack has six nodes, in rows of three.
func inRacks(i int) map[string]string {
	return map[string]string{"rack": fmt.Sprintf("r%d", i/6), "row": fmt.Sprintf("r%d-%d", i/6, i/3%2)}
}

// TestGroupsOfAGroup checks that PodGroups with node set constraints in one CompositePodGroup get their sets together, or wait.
func TestGroupsOfAGroup(t *testing.T) {
	restartScheduler(cluster(t), func() {}, compositeGate)
	t.Cleanup(func() { restartScheduler(cluster(t), func() {}) })

	// The first rack has five free nodes, enough for the group of three or the group of four, but not for both. Kubernetes
	// places one group after the other, so both must wait until the second rack is free.
	l := newNodes(t, "composite", 12, inRacks)
	l.occupy(t, 0, 6, 7, 8, 9)
	l.composite(t, "both", "", 2)
	prefill := l.group(t, "prefill", oneRow, "", 3, 3, whole)
	decode := l.group(t, "decode", oneRack, "", 4, 4, whole)
	waiting := slices.Concat(prefill, decode)
	env.Until(t, "a group waits for a set", func(context.Context) (bool, error) {
		return slices.ContainsFunc(waiting, func(name string) bool {
			return env.IsRefused(l.Pod(t, name), "nodes satisfies constraint celset.dev/nodes_of_group")
		}), nil
	})
	for _, name := range waiting {
		require.Empty(t, l.Pod(t, name).Spec.NodeName)
	}
	for _, i := range []int{6, 7, 8, 9} {
		l.DeletePod(t, fmt.Sprintf("occupies-%d", i))
	}
	first, second := l.on(t, prefill...), l.on(t, decode...)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(slices.Concat(first, second)))), 7)
	require.Equal(t, first[0]/3, first[2]/3)
	require.Equal(t, second[0]/6, second[3]/6)

	// The CompositePodGroup must be in one rack. Kubernetes tries each rack. Only the second rack has rows for both groups.
	l = newNodes(t, "rack", 18, inRacks)
	l.occupy(t, 0, 3, 4, 12, 15)
	l.composite(t, "in-a-rack", "rack", 2)
	a, b := l.group(t, "a", oneRow, "", 3, 3, whole), l.group(t, "b", oneRow, "", 2, 2, whole)
	first, second = l.on(t, a...), l.on(t, b...)
	require.Contains(t, [][]int{{6, 7, 8}, {9, 10, 11}}, first)
	require.Equal(t, 1, second[0]/6)
	require.Equal(t, second[0]/3, second[1]/3)

	// Both groups run on the same nodes. The second group must get the devices that the first group does not use.
	l = newRails(t, "devices", 2)
	driver := l.Ring(t, 8).Drivers()[0]
	l.composite(t, "halves", "", 2)
	a, b = l.group(t, "a", sameRails(driver), "", 2, 2, l.wants(t, driver, 4)), l.group(t, "b", sameRails(driver), "", 2, 2, l.wants(t, driver, 4))
	require.Equal(t, l.on(t, a...), l.on(t, b...))
	require.Equal(t, l.DevicesOf(t, a[0]), l.DevicesOf(t, a[1]))
	require.Equal(t, l.DevicesOf(t, b[0]), l.DevicesOf(t, b[1]))
	require.NotEqual(t, l.DevicesOf(t, a[0]), l.DevicesOf(t, b[0]))

	// A node set constraint covers the nodes of one PodGroup. A CompositePodGroup can't refer to one.
	l = newNodes(t, "key", 6, inRacks)
	l.composite(t, "refers", "celset.dev/nodes_of_all", 1)
	l.requireRefused(t, l.group(t, "child", oneRow, "", 2, 2, whole)[0], fmt.Sprintf("CompositePodGroup %s/refers has the topology key celset.dev/nodes_of_all, but a node set constraint applies to one PodGroup", l.Namespace))
}
