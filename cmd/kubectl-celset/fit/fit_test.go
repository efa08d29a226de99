// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/explain"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

func options(nodes ...string) fit.Options {
	args := &configv1alpha1.DynamicResourcesCELArgs{}
	configv1alpha1.SetDefaults(args)
	return fit.Options{Args: args, Nodes: nodes}
}

// state returns four nodes with one device each, and two claims. A pod uses the first claim on node-1. The second claim is
// pending.
func state() *clusterstate.State {
	allocated := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "has"}}
	allocated.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}}
	pending := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "wants"}}
	pending.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "x", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
	}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{
		{Name: "a", ResourceClaimName: ptr.To("has")}, {Name: "b", ResourceClaimName: ptr.To("wants")},
	}
	objects := &clusterstate.Objects{
		Claims:  []*resourceapi.ResourceClaim{allocated, pending},
		Pods:    []*corev1.Pod{pod},
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}},
	}
	for _, name := range []string{"node-1", "node-2", "node-3", "node-4"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": "a"}}}
		switch name {
		case "node-2":
			node.Labels = nil
		case "node-3":
			node.Spec.Unschedulable = true
		}
		objects.Nodes = append(objects.Nodes, node)
		if name == "node-4" {
			continue
		}
		objects.Slices = append(objects.Slices, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: "d", NodeName: ptr.To(name), Pool: resourceapi.ResourcePool{Name: name, ResourceSliceCount: 1}, Devices: []resourceapi.Device{{Name: "dev"}},
		}})
	}
	return clusterstate.New(objects)
}

func run(t *testing.T, s *clusterstate.State, argument string, nodes ...string) *fit.Report {
	t.Helper()
	subject, err := s.Subject(argument, "ns")
	require.NoError(t, err)
	result, err := fit.Run(t.Context(), s, subject, options(nodes...))
	require.NoError(t, err)
	return result
}

func reasons(result *fit.Report) map[string]string {
	reasons := make(map[string]string)
	for _, node := range result.Nodes {
		reasons[node.Node] = node.Reason
	}
	return reasons
}

func TestNodesOfAPod(t *testing.T) {
	s := state()
	result := run(t, s, "pod/p")
	require.True(t, result.Fits())
	require.Equal(t, map[string]string{
		"node-1": "",
		"node-2": "claim ns/has has devices that are not available on the node",
		"node-3": "the pod does not tolerate the taint node.kubernetes.io/unschedulable:NoSchedule",
		"node-4": "request r: too few matching devices are free (0 of 1 requested)",
	}, reasons(result))
	require.Equal(t, "ns/wants", result.Nodes[0].Claims[0].Name)
	require.Equal(t, []explain.Device{{Request: "r", Driver: "d", Pool: "node-1", Device: "dev"}}, result.Nodes[0].Claims[0].Devices)
	require.Equal(t, "ns/has", result.Allocated[0].Name)

	s.Pods[0].Spec.NodeName = "node-3"
	result = run(t, s, "pod/p")
	require.False(t, result.Fits())
	require.Equal(t, "the pod is on node node-3", reasons(result)["node-1"])
}

// TestNodesOfAClaim checks that an allocated claim without a pod fits only on the nodes that its devices are available on.
func TestNodesOfAClaim(t *testing.T) {
	result := run(t, state(), "claim/wants", "node-2", "node-3")
	require.Equal(t, map[string]string{"node-2": "", "node-3": ""}, reasons(result))
	result = run(t, state(), "claim/has", "node-1", "node-2")
	require.True(t, result.Fits())
	require.False(t, result.Nodes[1].Fits)
}

func TestInterruption(t *testing.T) {
	s := state()
	subject, err := s.Subject("claim/wants", "ns")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := options()
	interrupted.Progress = func(done, all int) {
		require.Equal(t, 4, all)
		if done == 2 {
			cancel()
		}
	}
	report, err := fit.Run(ctx, s, subject, interrupted)
	require.NoError(t, err)
	require.Len(t, report.Nodes, 2, "what is known")
	require.Equal(t, "2 of 4 nodes were asked for: context canceled", report.Incomplete)
	late := options()
	late.Args.FilterTimeout.Duration = 1
	report, err = fit.Run(t.Context(), s, subject, late)
	require.NoError(t, err)
	require.Contains(t, report.Error, "node node-1: no answer within 1ns")
}
