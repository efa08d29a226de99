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
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// nodes is a lab whose nodes have labels. New groups get its priority and its parent group, if set.
type nodes struct {
	*env.Lab
	priority, parent string
}

// newNodes creates n nodes. labels returns the labels of the i-th node.
func newNodes(t *testing.T, name string, n int, labels func(i int) map[string]string) *nodes {
	return &nodes{Lab: cluster(t).NewLabeledLab(t, name, n, labels)}
}

// at returns a function for the labels of the i-th node: its row and column in a grid of the width.
func at(width int) func(int) map[string]string {
	return func(i int) map[string]string {
		return map[string]string{"x": strconv.Itoa(i / width), "y": strconv.Itoa(i % width)}
	}
}

func rack(size int) func(int) map[string]string {
	return func(i int) map[string]string { return map[string]string{"rack": fmt.Sprintf("r%d", i/size)} }
}

// group creates a PodGroup and its pods. The group defines a node set constraint in its annotation and refers to it. more
// contains further fields of the constraint.
func (l *nodes) group(t *testing.T, name, expression, more string, minCount, pods int, edit ...func(*corev1.Pod)) []string {
	t.Helper()
	quoted, err := json.Marshal(expression)
	require.NoError(t, err)
	l.podGroup(t, name, "celset.dev/nodes_of_group", minCount, map[string]string{v1alpha1.NodeSetAnnotation: fmt.Sprintf(
		"apiVersion: celset.dev/v1alpha1\nkind: CELNodeSetConstraint\nname: nodes_of_group\nexpression: %s\n%s", quoted, more)})
	return l.members(t, name, pods, edit...)
}

// podGroup creates a PodGroup with the topology key and the annotations.
func (l *nodes) podGroup(t *testing.T, name, key string, minCount int, annotations map[string]string) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: schedulingv1beta1.PodGroupSpec{
		PriorityClassName:     l.priority,
		SchedulingPolicy:      schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(minCount)}},
		SchedulingConstraints: &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}},
	}}
	if l.parent != "" {
		group.Spec.ParentCompositePodGroupName = &l.parent
		group.Spec.WorkloadRef = &schedulingv1beta1.WorkloadReference{WorkloadName: "workload", TemplateName: "group"}
	}
	env.Create(t, l.Client().SchedulingV1beta1().PodGroups(l.Namespace), group)
}

func (l *nodes) members(t *testing.T, group string, pods int, edit ...func(*corev1.Pod)) (members []string) {
	t.Helper()
	for i := range pods {
		members = append(members, l.member(t, group, i, edit...))
	}
	return members
}

func (l *nodes) member(t *testing.T, group string, i int, edit ...func(*corev1.Pod)) string {
	t.Helper()
	pod := env.Pod(fmt.Sprintf("%s-%d", group, i), env.CelsetProfile)
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	pod.Spec.PriorityClassName = l.priority
	for _, edit := range edit {
		edit(pod)
	}
	l.CreatePodAsIs(t, pod)
	return pod.Name
}

// atOnce is the maximum number of objects that are created concurrently.
const atOnce = 16

// occupy creates pods on the nodes with these numbers, so that no other pod fits there.
func (l *nodes) occupy(t *testing.T, numbers ...int) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, i := range numbers {
		pod := env.Pod(fmt.Sprintf("occupies-%d", i), env.CelsetProfile)
		pod.Spec.NodeName = l.Nodes[i]
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		whole(pod)
		group.Go(func() error {
			_, err := l.Client().CoreV1().Pods(l.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
}

// whole makes a pod request more than half of a node's CPUs, so that only one pod fits on a node.
func whole(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40")}
}

// half makes a pod request less than half of a node's CPUs, so that two pods fit on a node.
func half(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30")}
}

// on waits until the pods are bound, and returns the sorted numbers of their nodes.
func (l *nodes) on(t *testing.T, members ...string) []int {
	t.Helper()
	l.RequireRunning(t, members...)
	var numbers []int
	for _, name := range members {
		numbers = append(numbers, slices.Index(l.Nodes, l.Pod(t, name).Spec.NodeName))
	}
	slices.Sort(numbers)
	return numbers
}

func (l *nodes) requireRefused(t *testing.T, member string, texts ...string) {
	t.Helper()
	l.RequireRefused(t, member, texts...)
}

const box = "nodes.box(n, [int(n.labels.x), int(n.labels.y)], [2, 2], [4, 4])"

// TestBlockOfATorus fills the second and third columns of a torus of 4x4 hosts, so that the only free 2x2 blocks are around the
// edge. A group of four must get a block. A group of five must not run.
func TestBlockOfATorus(t *testing.T) {
	l := newNodes(t, "torus", 16, at(4))
	l.occupy(t, 1, 2, 5, 6, 9, 10, 13, 14)
	members := l.group(t, "block", box, "", 4, 4, whole)
	got := l.on(t, members...)
	require.Equal(t, []int{0, 3, 12, 15}, got)

	l.requireRefused(t, l.group(t, "five", box, "", 5, 5, whole)[0], "no set of 5 nodes satisfies constraint celset.dev/nodes_of_group: 4 of 16 nodes can take a pod")
}

// TestRacks requests two racks with two pods each. A third pod would fit in the second rack, but must not run there.
func TestRacks(t *testing.T) {
	l := newNodes(t, "racks", 9, rack(3))
	l.occupy(t, 2, 6, 7)
	const twoEach = "nodes.map(n, n.labels.rack).distinct().size() == 2 && nodes.all(n, nodes.filter(o, o.labels.rack == n.labels.rack).size() == 2)"
	require.Equal(t, []int{0, 1, 3, 4}, l.on(t, l.group(t, "two-racks", twoEach, "", 4, 4, whole)...))
}

// TestGroupWaitsForANode checks that a group waits if a rack has one free node too few, and runs when another node becomes
// free.
func TestGroupWaitsForANode(t *testing.T) {
	l := newNodes(t, "waits", 4, rack(2))
	l.occupy(t, 0, 3)
	members := l.group(t, "waits", "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 2, 2, whole)
	l.requireRefused(t, members[0], "no set of 2 nodes satisfies constraint celset.dev/nodes_of_group: 2 of 4 nodes can take a pod", "Insufficient cpu",
		"nearest miss: a set of 2 nodes satisfies the constraint, but 1 of them can't take a pod: "+l.Nodes[0]+": Insufficient cpu, pod occupies-0")
	l.DeletePod(t, "occupies-3")
	require.Equal(t, []int{2, 3}, l.on(t, members...))
}

// TestGroupGrows checks that a pod that is created later goes to a node that keeps the expression true. A pod that is created
// again must go to the only node that completes the block.
func TestGroupGrows(t *testing.T) {
	l := newNodes(t, "grows", 16, at(4))
	members := l.group(t, "grows", box, "", 4, 4, whole)
	before := l.on(t, members...)
	l.DeletePod(t, members[2])
	again := l.member(t, "grows", 4, whole)
	require.Equal(t, before, l.on(t, members[0], members[1], members[3], again))
}

// TestPreferredNodes checks that a group gets the rack with the highest value of its preference.
func TestPreferredNodes(t *testing.T) {
	l := newNodes(t, "prefers", 6, func(i int) map[string]string {
		return map[string]string{"rack": fmt.Sprintf("r%d", i/2), "weight": strconv.Itoa([]int{3, 7, 5}[i/2])}
	})
	got := l.on(t, l.group(t, "prefers", "nodes.map(n, n.labels.rack).distinct().size() == 1", "preference: nodes.map(n, int(n.labels.weight)).sum()\n", 2, 2)...)
	require.Equal(t, []int{2, 3}, got)
}

// TestPodsPerNode creates four pods of a constraint with podsPerNode: 2. They must get two nodes of one rack.
func TestPodsPerNode(t *testing.T) {
	l := newNodes(t, "per-node", 4, rack(2))
	l.occupy(t, 0)
	got := l.on(t, l.group(t, "per-node", "nodes.size() == 2 && nodes.map(n, n.labels.rack).distinct().size() == 1", "podsPerNode: 2\n", 4, 4, half)...)
	require.Equal(t, []int{2, 2, 3, 3}, got)
}

// TestKinds creates a group with two kinds of pods: workers fit only on nodes with a label, a coordinator fits on any node.
func TestKinds(t *testing.T) {
	l := newNodes(t, "kinds", 6, func(i int) map[string]string {
		return map[string]string{"rack": fmt.Sprintf("r%d", i/3), "worker": strconv.FormatBool(i%3 != 0)}
	})
	l.occupy(t, 1)
	n := 0
	got := l.on(t, l.group(t, "kinds", "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 3, 3, whole, func(pod *corev1.Pod) {
		if n++; n < 3 {
			pod.Spec.NodeSelector["worker"] = "true"
		}
	})...)
	require.Equal(t, []int{3, 4, 5}, got)
	require.Equal(t, l.Nodes[3], l.Pod(t, "kinds-2").Spec.NodeName)
}

// TestPodsThatStandInEachOthersWay creates two pods that fit on every node, but not both in one zone because of anti-affinity.
// The nodes of the first sets are all in one zone, so the scheduler must try other sets.
func TestPodsThatStandInEachOthersWay(t *testing.T) {
	l := newNodes(t, "in-the-way", 6, func(i int) map[string]string {
		return map[string]string{"rack": fmt.Sprintf("r%d", i/3), "zone": []string{"a", "a", "a", "a", "a", "b"}[i]}
	})
	got := l.on(t, l.group(t, "in-the-way", "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 2, 2, l.apart)...)
	require.Contains(t, got, 5)
}

// apart adds an anti-affinity to a pod, so that no two pods of the lab are in one zone.
func (l *nodes) apart(pod *corev1.Pod) {
	pod.Labels = map[string]string{"app": l.Namespace}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
	}}}}
}

func zones(of ...string) func(int) map[string]string {
	return func(i int) map[string]string { return map[string]string{"zone": of[i]} }
}

// TestSomeFit creates a group of three pods that needs only two. Only two pods fit. They must run if their nodes satisfy the
// expression, and otherwise no pod must run.
func TestSomeFit(t *testing.T) {
	l := newNodes(t, "some", 3, zones("a", "a", "b"))
	members := l.group(t, "never", "nodes.size() == 3", "", 2, 3, l.apart)
	// The order of the pods decides whether the scheduler finds two pods that fit beside each other in its first attempt.
	l.requireAvailable(t, "never", none)
	for _, name := range members {
		require.Empty(t, l.Pod(t, name).Spec.NodeName)
	}
	group, err := l.Client().SchedulingV1beta1().PodGroups(l.Namespace).Get(t.Context(), "never", metav1.GetOptions{})
	require.NoError(t, err)
	require.False(t, meta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled), "%v", group.Status.Conditions)

	l = newNodes(t, "two", 3, zones("a", "a", "b"))
	members = l.group(t, "two", "nodes.size() >= 2", "", 2, 3, l.apart)
	env.Until(t, "two of them run", func(context.Context) (bool, error) {
		running := 0
		for _, name := range members {
			if l.Pod(t, name).Spec.NodeName != "" {
				running++
			}
		}
		return running == 2, nil
	})
}

// TestMorePodsThanASetMayHave creates more pods than a set can have nodes. The scheduler must choose nodes for the number of
// pods that the group needs.
func TestMorePodsThanASetMayHave(t *testing.T) {
	l := newNodes(t, "more", 2, rack(2))
	members := l.group(t, "more", "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 2, v1alpha1.MaxNodeSetSize+1, whole)
	env.Until(t, "two of them run", func(ctx context.Context) (bool, error) {
		pods, err := l.Client().CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
		running := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
		return err == nil && len(pods.Items) == len(members) && len(running) == 2, nil
	})
}

// TestNodesTakeFewerPods creates pods of a constraint that allows four pods per node. Only two of them fit on a node.
func TestNodesTakeFewerPods(t *testing.T) {
	l := newNodes(t, "fewer", 4, rack(2))
	got := l.on(t, l.group(t, "fewer", "nodes.map(n, n.labels.rack).distinct().size() == 1", "podsPerNode: 4\n", 4, 4, half)...)
	require.Equal(t, []int{0, 0, 1, 1}, got)
}

// TestGroupPreempts fills all nodes with pods of a lower priority. The scheduler must evict the pods of one rack, and the group
// must run there.
func TestGroupPreempts(t *testing.T) {
	l := newNodes(t, "preempts", 8, rack(4))
	high := l.CreatePriorityClass(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "high-"}, Value: 1000})
	l.occupy(t, 0, 1, 2, 3, 4, 5, 6, 7)
	l.priority = high.Name
	got := l.on(t, l.group(t, "preempts", "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 4, 4, whole)...)
	require.Contains(t, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}, got)
}

// TestGroupsCompete creates two groups that need overlapping blocks. All pods of one group must be bound, and no pod of the
// other.
func TestGroupsCompete(t *testing.T) {
	l := newNodes(t, "compete", 9, at(3))
	const block = "nodes.box(n, [int(n.labels.x), int(n.labels.y)], [2, 2])"
	a, b := l.group(t, "one", block, "", 4, 4, whole), l.group(t, "another", block, "", 4, 4, whole)
	winner, loser := l.requireOneWins(t, a, b)
	// When the pods of the first group have ended, the other group must run.
	for _, name := range winner {
		l.DeletePod(t, name)
	}
	l.on(t, loser...)
}

// requireOneWins waits until one of two groups runs and the other is rejected. No pod of the rejected group may be bound.
func (l *nodes) requireOneWins(t *testing.T, a, b []string) (winner, loser []string) {
	t.Helper()
	env.Until(t, "one of them runs, and the other is refused", func(context.Context) (bool, error) {
		ran, refused := 0, 0
		for _, name := range slices.Concat(a, b) {
			if l.Pod(t, name).Spec.NodeName != "" {
				ran++
			} else if env.IsRefused(l.Pod(t, name)) {
				refused++
			}
		}
		return ran == len(a) && refused > 0, nil
	})
	winner, loser = a, b
	if l.Pod(t, a[0]).Spec.NodeName == "" {
		winner, loser = b, a
	}
	l.on(t, winner...)
	for _, name := range loser {
		require.Empty(t, l.Pod(t, name).Spec.NodeName)
	}
	return winner, loser
}

// TestHostDies makes a host fail and creates its pod again. The pod must wait while the host is away, because only this host
// completes the block. It must run when the host is back.
func TestHostDies(t *testing.T) {
	l := newNodes(t, "dies", 16, at(4))
	members := l.group(t, "dies", box, "", 4, 4, whole)
	before := l.on(t, members...)
	host := l.Pod(t, members[3]).Spec.NodeName
	l.cordon(t, host, true)
	l.DeletePod(t, members[3])
	again := l.member(t, "dies", 4, whole)
	l.requireRefused(t, again, "no set of 4 nodes, of which 3 already run pods of the group, satisfies constraint celset.dev/nodes_of_group: 12 of 16 nodes can take a pod", "1 node(s) were unschedulable", "nearest miss: a set of 4 nodes satisfies the constraint, but 1 of them can't take a pod: "+host+": node(s) were unschedulable")
	l.cordon(t, host, false)
	require.Equal(t, before, l.on(t, append(members[:3:3], again)...))
	require.Equal(t, host, l.Pod(t, again).Spec.NodeName)
}

func (l *nodes) cordon(t *testing.T, node string, cordoned bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	_, err := l.Client().CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// TestRestart checks that a restarted scheduler places the fourth pod of a block whose other three pods are running.
func TestRestart(t *testing.T) {
	l := newNodes(t, "restart", 16, at(4))
	members := l.group(t, "restart", box, "", 4, 4, whole)
	before := l.on(t, members...)
	var again string
	restartScheduler(l.Env, func() {
		l.DeletePod(t, members[0])
		again = l.member(t, "restart", 4, whole)
	})
	require.Equal(t, before, l.on(t, append(members[1:], again)...))
}

// TestSchedulerOfKubernetesPlacesNothing checks that the unchanged kube-scheduler does not place a group with a node set
// constraint. It finds no node, because it takes the reference for a topology label, and no node has this label.
func TestSchedulerOfKubernetesPlacesNothing(t *testing.T) {
	l := newNodes(t, "stock", 4, at(2))
	l.StartStock(t, controlplane.SchedulerOptions{FeatureGates: gates, Config: []byte(
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: stock}]\n")})
	stock := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "stock" }
	members := l.group(t, "fails-closed", box, "", 4, 4, stock)
	l.requireRefused(t, members[0], "no feasible placements found")
	pod := env.Pod("plain", "stock")
	l.CreatePodAsIs(t, pod)
	l.RequireRunning(t, "plain")
	for _, name := range members {
		require.Empty(t, l.Pod(t, name).Spec.NodeName)
	}
}

// TestOneRackOfThousands measures groups of 18 pods on 5,000 nodes, each in one rack, and compares with a group that
// Kubernetes' own topology placement places. Each runs five times.
func TestOneRackOfThousands(t *testing.T) {
	cases.OnlyNightly(t, "it makes 5,000 nodes and measures")
	l := newNodes(t, "thousands", 5004, rack(18))
	took := map[bool][]time.Duration{}
	for i := range 10 {
		ours := i%2 == 0
		name := fmt.Sprintf("group-%d", i)
		begin := time.Now()
		members := l.group(t, name, "nodes.map(n, n.labels.rack).distinct().size() == 1", "", 18, 18, func(pod *corev1.Pod) {
			whole(pod)
			if !ours {
				// This group refers to a topology label, so that Kubernetes' own code places it.
				pod.Spec.SchedulingGroup.PodGroupName = ptr.To(name + "-of-kubernetes")
			}
		})
		if !ours {
			l.podGroup(t, name+"-of-kubernetes", "rack", 18, nil)
		}
		l.on(t, members...)
		took[ours] = append(took[ours], time.Since(begin))
	}
	t.Logf("on a rack of 278: %v, with upstream's generator %v", took[true], took[false])
}
