// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// In these tests the pods of a group have roles or numbers, and the constraint reads them.

const (
	completionIndex = "batch.kubernetes.io/job-completion-index"
	workerIndex     = "leaderworkerset.sigs.k8s.io/worker-index"
	found           = "True " + wellknown.ReasonNodeSetFound
	none            = "False " + wellknown.ReasonNoNodeSet
)

// labeled returns a function that adds labels to a pod.
func labeled(pairs ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			pod.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// selects returns a function that adds a label to the node selector of a pod.
func selects(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector[key] = value }
}

// number returns the number of a pod's node, and waits until the pod is bound.
func (l *nodes) number(t *testing.T, pod string) int {
	t.Helper()
	return l.on(t, pod)[0]
}

// requireAvailable waits until the condition NodeSetAvailable of a group has the status and reason, and its message the texts.
func (l *nodes) requireAvailable(t *testing.T, group, want string, texts ...string) {
	t.Helper()
	l.requireCondition(t, group, wellknown.ConditionNodeSetAvailable, want, texts...)
}

// dies removes a node and the pod that runs there.
func (l *nodes) dies(t *testing.T, pod string) {
	t.Helper()
	node := l.Pod(t, pod).Spec.NodeName
	require.NoError(t, l.Client().CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))
	l.DeletePod(t, pod)
}

// inRows returns the labels of the i-th node. Each rack has a row of sixteen nodes and a row of seven.
func inRows(i int) map[string]string {
	row := 0
	if i%23 >= 16 {
		row = 1
	}
	return map[string]string{"rack": fmt.Sprintf("r%d", i/23), "row": fmt.Sprintf("r%d-%d", i/23, row)}
}

// prefillNodes returns two racks. The first rack has four free nodes in each row, so that it takes only prefill. In the second rack,
// eight nodes of the long row and all seven nodes of the short row are free. Prefill must leave the long row to decode, although the
// long row comes first and has more nodes in use.
func prefillNodes(t *testing.T, name string) *nodes {
	l := newNodes(t, name, 46, inRows)
	l.occupy(t, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 31, 32, 33, 34, 35, 36, 37, 38)
	return l
}

const (
	prefillPods = 4
	decodePods  = 8
)

// TestPrefillLeavesDecodeItsRow places four pods for prefill and eight for decode. Both roles share a rack, and each role has one row. Only
// the whole group has a solution: the first free nodes for prefill leave no row for decode.
func TestPrefillLeavesDecodeItsRow(t *testing.T) {
	l := prefillNodes(t, "prefill")
	const expression = "nodes.map(n, n.labels.rack).distinct().size() == 1 && ['prefill', 'decode'].all(r, nodes.filter(n, n.pod.labels['role'] == r).map(n, n.labels.row).distinct().size() == 1)"
	i := 0
	role := func(pod *corev1.Pod) {
		if i++; i <= prefillPods {
			labeled("role", "prefill")(pod)
		} else {
			labeled("role", "decode")(pod)
		}
	}
	pods := l.group(t, "serve", expression, "", prefillPods+decodePods, prefillPods+decodePods, whole, role)
	prefill, decode := pods[:prefillPods], pods[prefillPods:]
	require.Equal(t, []int{23, 24, 25, 26, 27, 28, 29, 30}, l.on(t, decode...))
	require.Equal(t, []int{39, 40, 41, 42}, l.on(t, prefill...))

	// A node of prefill dies. The row of prefill has more free nodes.
	l.dies(t, prefill[1])
	prefill[1] = l.member(t, "serve", 20, whole, labeled("role", "prefill"))
	require.Equal(t, 43, l.number(t, prefill[1]))

	// No free node is left for decode. The condition names the node until the node is back.
	host := l.Pod(t, decode[3]).Spec.NodeName
	l.cordon(t, host, true)
	l.DeletePod(t, decode[3])
	again := l.member(t, "serve", 21, whole, labeled("role", "decode"))
	l.requireAvailable(t, "serve", none, "no set of 12 nodes, of which 11 already run pods of the group, satisfies constraint celset.dev/nodes_of_group",
		"nearest miss: a set of 12 nodes satisfies the constraint, but 1 of them can't take a pod: "+host+": node(s) were unschedulable")
	l.cordon(t, host, false)
	require.Equal(t, host, l.Nodes[l.number(t, again)])
	l.requireAvailable(t, "serve", found)
}

// TestPrefillAndDecodeInKubernetes logs the result of kube-scheduler for the same nodes, with a CompositePodGroup for the rack, and
// a PodGroup for the row of each role. Kubernetes places one PodGroup after the other, so that the result depends on their order and
// on its choice for the first one.
func TestPrefillAndDecodeInKubernetes(t *testing.T) {
	cluster(t).StartStock(t, controlplane.SchedulerOptions{
		FeatureGates: map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true, compositeGate: true},
		Config:       []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: stock}]\n"),
	})
	for _, names := range [][2]string{{"b-prefill", "a-decode"}, {"a-prefill", "b-decode"}} {
		l := prefillNodes(t, "composite-prefill")
		l.composite(t, "serve", "rack", 2)
		stock := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "stock" }
		var pods []string
		for i, count := range []int{prefillPods, decodePods} {
			l.podGroup(t, names[i], "row", count, nil)
			pods = append(pods, l.members(t, names[i], count, whole, stock)...)
		}
		env.Until(t, "each pod is bound or refused", func(context.Context) (bool, error) {
			return !slices.ContainsFunc(pods, func(name string) bool {
				pod := l.Pod(t, name)
				return pod.Spec.NodeName == "" && !env.IsRefused(pod)
			}), nil
		})
		bound, reason := map[string]int{}, ""
		for _, name := range pods {
			pod := l.Pod(t, name)
			if pod.Spec.NodeName != "" {
				bound[*pod.Spec.SchedulingGroup.PodGroupName+" in row "+inRows(slices.Index(l.Nodes, pod.Spec.NodeName))["row"]]++
				continue
			}
			for _, c := range pod.Status.Conditions {
				reason = c.Message
			}
		}
		t.Logf("kube-scheduler bound %v, last reason %q", bound, reason)
	}
}

// TestLeaderNeedsAnotherTypeOfNode places a leader that needs a node with CPUs only, and three workers that need nodes with GPUs, in one rack.
func TestLeaderNeedsAnotherTypeOfNode(t *testing.T) {
	l := newNodes(t, "leader", 15, func(i int) map[string]string {
		return map[string]string{"rack": fmt.Sprintf("r%d", i/5), "type": []string{"cpu", "gpu", "gpu", "gpu", "gpu"}[i%5]}
	})
	// The first rack has no free node for the leader, and the second one has too few for workers.
	l.occupy(t, 0, 6, 7)
	const expression = "nodes.filter(n, n.pod.labels['" + workerIndex + "'] == '0').all(leader, nodes.all(n, n.labels.rack == leader.labels.rack))"
	as := func(i int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			labeled(workerIndex, strconv.Itoa(i))(pod)
			selects("type", map[bool]string{true: "cpu", false: "gpu"}[i == 0])(pod)
		}
	}
	i := -1
	pods := l.group(t, "leads", expression, "", 4, 4, whole, func(pod *corev1.Pod) {
		i++
		as(i)(pod)
	})
	require.Equal(t, []int{10, 11, 12, 13}, l.on(t, pods...))
	require.Equal(t, 10, l.number(t, pods[0]))

	// A worker gets the free node of its rack.
	l.dies(t, pods[2])
	pods[2] = l.member(t, "leads", 4, whole, as(2))
	require.Equal(t, 14, l.number(t, pods[2]))

	// The rack has no other node for a leader.
	host := l.Pod(t, pods[0]).Spec.NodeName
	l.cordon(t, host, true)
	l.DeletePod(t, pods[0])
	again := l.member(t, "leads", 5, whole, as(0))
	l.requireAvailable(t, "leads", none, "nearest miss: a set of 4 nodes satisfies the constraint, but 1 of them can't take a pod: "+host+": node(s) were unschedulable")
	l.cordon(t, host, false)
	require.Equal(t, host, l.Nodes[l.number(t, again)])
	l.requireAvailable(t, "leads", found)
}

// TestSegmentsOfRanks places 32 pods in segments of eight on racks of 18 nodes. Half of the nodes are in use: one rack has seven free
// nodes, one has eleven, and the others have nine.
func TestSegmentsOfRanks(t *testing.T) {
	const racks, trays, size, count = 6, 18, 8, 32
	l := newNodes(t, "ranks", racks*trays, func(i int) map[string]string { return map[string]string{"clique": fmt.Sprintf("c%d", i/trays)} })
	var used []int
	for i := range racks * trays {
		if free := []int{7, 11, 9, 9, 9, 9}[i/trays]; i%trays >= free {
			used = append(used, i)
		}
	}
	l.occupy(t, used...)
	rank := func(i int) func(*corev1.Pod) { return labeled(completionIndex, strconv.Itoa(i)) }
	at := count
	created := l.group(t, "ranks", "nodes.segments(8, n, n.labels.clique)", "", count, count, whole, func(pod *corev1.Pod) {
		at--
		rank(at)(pod)
	})
	// The pods were created in descending order of their ranks.
	pods := slices.Clone(created)
	slices.Reverse(pods)
	l.on(t, pods...)
	cliques := map[int]bool{}
	for segment := range count / size {
		of := pods[segment*size : (segment+1)*size]
		numbers := l.on(t, of...)
		require.Equal(t, numbers[0]/trays, numbers[size-1]/trays, "segment %d: %v", segment, numbers)
		cliques[numbers[0]/trays] = true
		for i, name := range of {
			require.Equal(t, numbers[i], l.number(t, name), "rank %d", segment*size+i)
		}
	}
	require.Len(t, cliques, count/size)

	// A pod that is created again gets the ninth node of its own clique. For the next one no node of the clique is left.
	last := pods[3*size]
	clique := l.number(t, last) / trays
	l.dies(t, last)
	pods[3*size] = l.member(t, "ranks", count, whole, rank(3*size))
	require.Equal(t, clique, l.number(t, pods[3*size])/trays)
	host := l.Pod(t, pods[3*size+5]).Spec.NodeName
	l.cordon(t, host, true)
	l.DeletePod(t, pods[3*size+5])
	again := l.member(t, "ranks", count+1, whole, rank(3*size+5))
	l.requireAvailable(t, "ranks", none, "no set of 32 nodes, of which 31 already run pods of the group, satisfies constraint celset.dev/nodes_of_group", host+": node(s) were unschedulable")
	l.cordon(t, host, false)
	require.Equal(t, host, l.Nodes[l.number(t, again)])
	l.requireAvailable(t, "ranks", found)
}

// TestLabelsThatAreNotRead checks that roles and ranks don't change the nodes of a group if the constraint does not read them, and
// that a group that never waited has no condition.
func TestLabelsThatAreNotRead(t *testing.T) {
	var got [2][]int
	for i, edit := range []func(*corev1.Pod){func(*corev1.Pod) {}, func(pod *corev1.Pod) {
		labeled("role", pod.Name, completionIndex, pod.Name[len(pod.Name)-1:])(pod)
	}} {
		l := newNodes(t, fmt.Sprintf("unread-%d", i), 9, rack(3))
		l.occupy(t, 1)
		members := l.group(t, "unread", "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 3, 3, whole, edit)
		got[i] = l.on(t, members...)
		group, err := l.Client().SchedulingV1beta1().PodGroups(l.Namespace).Get(t.Context(), "unread", metav1.GetOptions{})
		require.NoError(t, err)
		require.False(t, slices.ContainsFunc(group.Status.Conditions, func(c metav1.Condition) bool { return c.Type == wellknown.ConditionNodeSetAvailable }))
	}
	require.Equal(t, [2][]int{{3, 4, 5}, {3, 4, 5}}, got)
}
