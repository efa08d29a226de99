// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
)

func wanting(name string, resources ...corev1.ResourceName) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: named("ns", name)}
	list := corev1.ResourceList{}
	for _, r := range resources {
		list[r] = resource.MustParse("2")
	}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}}
	return pod
}

// TestClassOfAnExtendedResource has classes that stand for the same resource, and compares with what
// kube-scheduler knows of them.
func TestClassOfAnExtendedResource(t *testing.T) {
	now := time.Now()
	var classes []*resourceapi.DeviceClass
	for name, age := range map[string]time.Duration{"old": time.Hour, "new-b": 0, "new-a": 0, "older": 2 * time.Hour} {
		class := &resourceapi.DeviceClass{ObjectMeta: named("", name)}
		class.CreationTimestamp = metav1.NewTime(now.Add(-age))
		class.Spec.ExtendedResourceName = ptr.To("example.com/mla")
		classes = append(classes, class)
	}
	known := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	var handler cache.ResourceEventHandler = known
	for _, class := range classes {
		handler.OnAdd(class, true)
	}
	for _, name := range []corev1.ResourceName{"example.com/mla", "deviceclass.resource.kubernetes.io/new-a"} {
		state := clusterstate.New(&clusterstate.Objects{Classes: classes, Pods: []*corev1.Pod{wanting("p", name)}})
		subject, err := state.Subject("pod/p", "ns")
		require.NoError(t, err)
		require.Equal(t, known.GetDeviceClass(name).Name, subject.Claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName)
	}
	state := clusterstate.New(&clusterstate.Objects{Classes: classes, Pods: []*corev1.Pod{wanting("p", "example.com/other", "cpu")}})
	subject, err := state.Subject("pod/p", "ns")
	require.NoError(t, err)
	require.Empty(t, subject.Claims)
}

// TestExtendedClaimOnNodes: what a node has by itself is not requested there.
func TestExtendedClaimOnNodes(t *testing.T) {
	class := func(name string) *resourceapi.DeviceClass {
		return &resourceapi.DeviceClass{ObjectMeta: named("", name), Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/" + name)}}
	}
	state := clusterstate.New(&clusterstate.Objects{
		Classes: []*resourceapi.DeviceClass{class("a"), class("b")},
		Pods:    []*corev1.Pod{wanting("p", "example.com/a", "example.com/b")},
	})
	subject, err := state.Subject("pod/p", "ns")
	require.NoError(t, err)
	for provided, want := range map[corev1.ResourceName][]string{
		"":              {"container-0-request-0", "container-0-request-1"},
		"example.com/a": {"container-0-request-1"},
		"example.com/b": {"container-0-request-0"},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{provided: resource.MustParse("8")}}}
		var got []string
		for _, request := range state.PendingOn(subject, node)[0].Spec.Devices.Requests {
			got = append(got, request.Name)
		}
		require.Equal(t, want, got)
	}
	both := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"example.com/a": resource.MustParse("8"), "example.com/b": resource.MustParse("8"),
	}}}
	require.Empty(t, state.PendingOn(subject, both))
}

// TestExtendedClaimThatWasMade is the one in the pod's status.
func TestExtendedClaimThatWasMade(t *testing.T) {
	pod := wanting("p", "deviceclass.resource.kubernetes.io/c")
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "made"}
	objects := &clusterstate.Objects{
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: named("", "c")}}, Pods: []*corev1.Pod{pod},
		Claims: []*resourceapi.ResourceClaim{{ObjectMeta: named("ns", "made")}},
	}
	subject, err := clusterstate.New(objects).Subject("pod/p", "ns")
	require.NoError(t, err)
	require.Equal(t, []string{"ns/made"}, names(subject.Claims))
	objects.Claims = nil
	_, err = clusterstate.New(objects).Subject("pod/p", "ns")
	require.ErrorContains(t, err, `there is no ResourceClaim "made"`)
}
