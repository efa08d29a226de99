// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/celset/celset/internal/clusterstate"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func someObjects() []runtime.Object {
	return []runtime.Object{
		&resourceapi.ResourceClaim{ObjectMeta: named("a", "c")},
		&resourceapi.ResourceClaim{ObjectMeta: named("b", "c")},
		&resourceapi.ResourceClaimTemplate{ObjectMeta: named("a", "t")},
		&resourceapi.ResourceClaimTemplate{ObjectMeta: named("b", "t")},
		&resourceapi.DeviceClass{ObjectMeta: named("", "x")},
		&resourceapi.ResourceSlice{ObjectMeta: named("", "s")},
		&resourceapi.DeviceTaintRule{ObjectMeta: named("", "r")},
		&corev1.Node{ObjectMeta: named("", "node-1")},
		&corev1.Pod{ObjectMeta: named("a", "p")},
		&corev1.Pod{ObjectMeta: named("b", "p")},
	}
}

// Claims of all namespaces are needed, because any may have devices.
func TestReadCluster(t *testing.T) {
	client := fake.NewClientset(someObjects()...)
	objects, err := clusterstate.ReadCluster(t.Context(), client, "a")
	require.NoError(t, err)
	require.Empty(t, objects.Warnings)
	require.Len(t, objects.Claims, 2)
	require.Len(t, objects.Templates, 1)
	require.Len(t, objects.Classes, 1)
	require.Len(t, objects.Slices, 1)
	require.Len(t, objects.TaintRules, 1)
	require.Len(t, objects.Nodes, 1)
	require.Len(t, objects.Pods, 1)
	for _, action := range client.Actions() {
		require.Equal(t, "list", action.GetVerb(), "nothing but lists")
	}
	objects, err = clusterstate.ReadCluster(t.Context(), client, "")
	require.NoError(t, err)
	require.Len(t, objects.Pods, 2)
}

func TestReadClusterWithFewRights(t *testing.T) {
	forbid := func(resources ...string) *fake.Clientset {
		client := fake.NewClientset(someObjects()...)
		for _, resource := range resources {
			client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(resourceapi.Resource(resource), "", nil)
			})
		}
		return client
	}
	objects, err := clusterstate.ReadCluster(t.Context(), forbid("nodes", "devicetaintrules"), "a")
	require.NoError(t, err)
	require.Len(t, objects.Warnings, 2)
	require.Len(t, objects.Slices, 1)
	_, err = clusterstate.ReadCluster(t.Context(), forbid("resourceslices"), "a")
	require.ErrorContains(t, err, "list ResourceSlices: ")
}

// Who has rights in one namespace gets an answer, and is told what it does not know of.
func TestReadClusterWithRightsInANamespace(t *testing.T) {
	client := fake.NewClientset(someObjects()...)
	client.PrependReactor("list", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == "a" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(resourceapi.Resource("resourceclaims"), "", nil)
	})
	objects, err := clusterstate.ReadCluster(t.Context(), client, "a")
	require.NoError(t, err)
	require.Equal(t, []string{"a/c"}, names(objects.Claims))
	require.Len(t, objects.Warnings, 1)
	require.Contains(t, objects.Warnings[0], "claims of other namespaces can't be seen, and the devices that they have look free: list ResourceClaims: ")
	for _, namespace := range []string{"", "b"} {
		_, err = clusterstate.ReadCluster(t.Context(), client, namespace)
		require.ErrorContains(t, err, "list ResourceClaims: ", namespace)
	}
}

func TestOverlay(t *testing.T) {
	below := &clusterstate.Objects{
		Claims:   []*resourceapi.ResourceClaim{{ObjectMeta: named("a", "x"), Spec: wants("below")}, {ObjectMeta: named("b", "x")}},
		Warnings: []string{"w"},
	}
	above := &clusterstate.Objects{
		Claims: []*resourceapi.ResourceClaim{{ObjectMeta: named("a", "x"), Spec: wants("above")}, {ObjectMeta: named("a", "w")}},
	}
	both := below.Overlay(above)
	require.Equal(t, []string{"a/w", "a/x", "b/x"}, names(both.Claims))
	require.Equal(t, wants("above"), both.Claims[1].Spec)
	require.Equal(t, []string{"w"}, both.Warnings)
	require.Len(t, below.Claims, 2)
}

func wants(request string) resourceapi.ResourceClaimSpec {
	return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: request}}}}
}

func names[T metav1.Object](objects []T) []string {
	var result []string
	for _, object := range objects {
		result = append(result, object.GetNamespace()+"/"+object.GetName())
	}
	return result
}
