// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/preempt"
	"github.com/celset/celset/internal/clusterstate"
)

const perNode = 4

// fleet has nodes of four devices each.
func fleet(nodes ...string) *clusterstate.Objects {
	objects := &clusterstate.Objects{Classes: []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}}
	for _, name := range nodes {
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: "d", NodeName: ptr.To(name), Pool: resourceapi.ResourcePool{Name: name, ResourceSliceCount: 1},
		}}
		for i := range perNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprint(i)})
		}
		objects.Slices = append(objects.Slices, slice)
	}
	return objects
}

// claim wants so many devices. Its UID is its name.
func claim(objects *clusterstate.Objects, name string, count int64) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	c.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "x", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}}
	objects.Claims = append(objects.Claims, c)
	return c
}

// pod uses claims. Its UID is its name.
func pod(objects *clusterstate.Objects, name string, priority int32, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{Priority: ptr.To(priority)}}
	for _, c := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: c, ResourceClaimName: ptr.To(c)})
	}
	objects.Pods = append(objects.Pods, p)
	return p
}

// waiting is a pod with a claim for so many devices.
func waiting(objects *clusterstate.Objects, name string, priority int32, count int64) *corev1.Pod {
	claim(objects, name, count)
	return pod(objects, name, priority, name)
}

// running is a pod on a node with a claim that has devices of it.
func running(objects *clusterstate.Objects, name string, priority int32, node string, devices ...int) *corev1.Pod {
	p := waiting(objects, name, priority, int64(len(devices)))
	p.Spec.NodeName = node
	allocate(objects.Claims[len(objects.Claims)-1], node, []string{name}, devices...)
	return p
}

// allocate has a claim have devices, for pods.
func allocate(c *resourceapi.ResourceClaim, node string, pods []string, devices ...int) {
	c.Finalizers = []string{resourceapi.Finalizer}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "r", Driver: "d", Pool: node, Device: fmt.Sprint(device),
		})
	}
	for _, name := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(name)})
	}
}

func budget(objects *clusterstate.Objects, app string, allowed int32) {
	objects.Budgets = append(objects.Budgets, &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: app},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policy.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	})
}

func run(t *testing.T, objects *clusterstate.Objects, name string, nodes ...string) *preempt.Result {
	t.Helper()
	state := clusterstate.New(objects)
	subject, err := state.Subject("pod/"+name, "ns")
	require.NoError(t, err)
	result, err := preempt.Run(t.Context(), state, subject, preempt.Options{Features: structured.Features{}, Nodes: nodes})
	require.NoError(t, err)
	return result
}

// victims are those of the candidates, "node: pods".
func victims(result *preempt.Result) []string {
	var all []string
	for _, candidate := range result.Candidates {
		text := candidate.Node + ":"
		for _, victim := range candidate.Victims {
			text += " " + victim.Pod
		}
		all = append(all, text)
	}
	return all
}

// why is why claims are in the way on the only node that refuses.
func why(t *testing.T, result *preempt.Result) map[string]string {
	t.Helper()
	require.Empty(t, result.Candidates)
	require.Len(t, result.Refused, 1)
	reasons := map[string]string{}
	for _, obstacle := range result.Refused[0].InTheWay {
		reasons[obstacle.Claim] = obstacle.Why
	}
	return reasons
}
