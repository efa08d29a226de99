// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/preempt"
	"github.com/celset/celset/internal/clusterstate"
)

// TestNodesInOrderOfCost: budgets, then the highest priority, then how many pods.
func TestNodesInOrderOfCost(t *testing.T) {
	objects := fleet("budget", "high", "many", "one")
	waiting(objects, "train", 1000, perNode)
	budget(objects, "web", 0)
	running(objects, "web", 1, "budget", 0).Labels = map[string]string{"app": "web"}
	running(objects, "serve", 500, "high", 0)
	running(objects, "a", 10, "many", 0)
	running(objects, "b", 10, "many", 1)
	running(objects, "c", 10, "one", 0, 1)
	result := run(t, objects, "train")
	require.Equal(t, []string{"one: ns/c", "many: ns/a ns/b", "high: ns/serve", "budget: ns/web"}, victims(result))
	require.True(t, result.Helps())
	require.Equal(t, preempt.Cost{HighestPriority: 10, Pods: 2}, result.Candidates[1].Cost)
	require.Equal(t, preempt.Cost{BudgetViolations: 1, HighestPriority: 1, Pods: 1}, result.Candidates[3].Cost)
	require.Equal(t, []string{"d/one/0", "d/one/1"}, result.Candidates[0].Victims[0].Devices)
	require.Len(t, result.Candidates[0].Claims[0].Devices, perNode)
	for _, candidate := range result.Candidates {
		require.True(t, candidate.Exact)
	}
}

// TestLateStartersGo as in kube-scheduler, if all else is the same.
func TestLateStartersGo(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, 1)
	for i := range perNode {
		running(objects, fmt.Sprint("p", i), 10, "node", i).Status.StartTime = &metav1.Time{Time: time.Unix(int64(100-(i-2)*(i-2)), 0)}
	}
	require.Equal(t, []string{"node: ns/p2"}, victims(run(t, objects, "train")))
}

// TestPodsWithoutDevicesStay, and those that have ended count for nothing.
func TestPodsWithoutDevicesStay(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, perNode)
	for i := range 30 {
		pod(objects, fmt.Sprint("plain", i), 5).Spec.NodeName = "node"
	}
	running(objects, "batch", 10, "node", 0)
	ended := running(objects, "ended", 1, "node")
	ended.Status.Phase = corev1.PodSucceeded
	result := run(t, objects, "train")
	require.Equal(t, []string{"node: ns/batch"}, victims(result))
	require.True(t, result.Candidates[0].Exact)
}

// TestSharedClaims give back their devices with the last pod that uses them.
func TestSharedClaims(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, perNode)
	pod(objects, "a", 10, "shared").Spec.NodeName = "node"
	b := pod(objects, "b", 10, "shared")
	b.Spec.NodeName = "node"
	allocate(claim(objects, "shared", 1), "node", []string{"a", "b"}, 0)
	require.Equal(t, []string{"node: ns/a ns/b"}, victims(run(t, objects, "train")))
	b.Spec.NodeName = "elsewhere"
	require.Equal(t, map[string]string{"ns/shared": "pod ns/b is on node elsewhere"}, why(t, run(t, objects, "train")))
}

func TestWhyClaimsKeepTheirDevices(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *resourceapi.ResourceClaim, p *corev1.Pod)
		want   string
	}{
		"the same priority": {func(_ *resourceapi.ResourceClaim, p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](1000) }, "pod ns/p has priority 1000"},
		"nobody":            {func(c *resourceapi.ResourceClaim, _ *corev1.Pod) { c.Status.ReservedFor = nil }, "nobody uses it, so that no eviction gives them back"},
		"a group": {func(c *resourceapi.ResourceClaim, _ *corev1.Pod) {
			c.Status.ReservedFor[0] = resourceapi.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g"}
		}, "it is reserved for podgroups g, which is not evicted"},
		"somebody unknown": {func(c *resourceapi.ResourceClaim, _ *corev1.Pod) { c.Status.ReservedFor[0].UID = "old" }, `pod ns/p with the uid "old" is not known`},
		"no finalizer":     {func(c *resourceapi.ResourceClaim, _ *corev1.Pod) { c.Finalizers = nil }, "it lacks the finalizer resource.kubernetes.io/delete-protection, so that nobody takes them away"},
		"on no node":       {func(_ *resourceapi.ResourceClaim, p *corev1.Pod) { p.Spec.NodeName = "" }, "pod ns/p is on no node yet"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := fleet("node")
			waiting(objects, "train", 1000, perNode)
			p := running(objects, "p", 10, "node", 0)
			test.change(objects.Claims[1], p)
			result := run(t, objects, "train")
			require.False(t, result.Helps())
			require.Equal(t, map[string]string{"ns/p": test.want}, why(t, result))
		})
	}
}

// TestThePodsOwnClaim keeps its devices, and keeps the others on its node.
func TestThePodsOwnClaim(t *testing.T) {
	objects := fleet("node-1", "node-2")
	objects.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}}
	running(objects, "batch", 10, "node-1", 0)
	running(objects, "other", 10, "node-2", 0)
	wants := claim(objects, "wants", perNode)
	own := claim(objects, "own", 1)
	allocate(own, "node-1", nil, 3)
	own.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}},
	}}}
	pod(objects, "train", 1000, "own", "wants")
	result := run(t, objects, "train")
	require.Empty(t, result.Candidates)
	require.Len(t, result.Refused, 2)
	require.Equal(t, []preempt.Obstacle{{Claim: "ns/own", Devices: []string{"d/node-1/3"}, Why: "it is the pod's own"}}, result.Refused[0].InTheWay)
	require.Equal(t, "claim ns/own has devices that are not available on the node", result.Refused[1].Reason)
	wants.Spec.Devices.Requests[0].Exactly.Count = perNode - 1
	require.Equal(t, []string{"node-1: ns/batch"}, victims(run(t, objects, "train")))
}

func TestWhatNeverFits(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, perNode+1)
	running(objects, "batch", 10, "node", 0)
	result := run(t, objects, "train")
	require.Len(t, result.Refused, 1)
	require.True(t, result.Refused[0].Never)
	require.Empty(t, result.Refused[0].InTheWay)
}

// TestNodesWithoutDevices are told of if they are asked for.
func TestNodesWithoutDevices(t *testing.T) {
	objects := fleet("node")
	objects.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, {ObjectMeta: metav1.ObjectMeta{Name: "plain"}}}
	waiting(objects, "train", 1000, 1)
	running(objects, "batch", 10, "node", 0, 1, 2, 3)
	require.Empty(t, run(t, objects, "train").Refused)
	require.Len(t, run(t, objects, "train", "plain").Refused, 1)
}

// TestErrorsOfTheClaims are the same for all nodes.
func TestErrorsOfTheClaims(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, 1)
	objects.Claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName = "missing"
	result := run(t, objects, "train")
	require.Contains(t, result.Error, "missing")
	require.False(t, result.Helps())
}

func TestTimeIsOver(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, perNode)
	running(objects, "batch", 10, "node", 0)
	state := clusterstate.New(objects)
	subject, err := state.Subject("pod/train", "ns")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result, err := preempt.Run(ctx, state, subject, preempt.Options{})
	require.NoError(t, err)
	require.Contains(t, result.Error, context.Canceled.Error())
	require.False(t, result.Helps())
}

func TestNotesAboutGroups(t *testing.T) {
	objects := fleet("node")
	waiting(objects, "train", 1000, perNode)
	running(objects, "batch", 10, "node", 0)
	require.Len(t, run(t, objects, "train").Notes, 2)
	for _, p := range objects.Pods {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{}
	}
	require.Len(t, run(t, objects, "train").Notes, 4)
}
