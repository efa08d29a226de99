// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/clusterstate"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func names[T metav1.Object](objects []T) []string {
	var result []string
	for _, object := range objects {
		result = append(result, object.GetNamespace()+"/"+object.GetName())
	}
	return result
}

func TestOverlay(t *testing.T) {
	below := &clusterstate.Objects{
		Claims: []*resourceapi.ResourceClaim{{ObjectMeta: named("a", "x"), Spec: wants("below")}, {ObjectMeta: named("b", "x")}},
		Unread: clusterstate.Unread{Warnings: []string{"w"}},
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

// TestFilesAreAsked checks that a command without a name is about the objects in the files, and not about other objects of the
// namespace.
func TestFilesAreAsked(t *testing.T) {
	inCluster := &clusterstate.Objects{
		Pods:      []*corev1.Pod{{ObjectMeta: named("a", "other")}, {ObjectMeta: named("a", "another")}},
		Templates: []*resourceapi.ResourceClaimTemplate{{ObjectMeta: named("a", "elsewhere")}},
	}
	inFile := &clusterstate.Objects{Templates: []*resourceapi.ResourceClaimTemplate{{ObjectMeta: named("a", "mine")}}}
	state := clusterstate.New(inCluster.Overlay(inFile))
	subject, err := state.Subject("", "a")
	require.NoError(t, err)
	require.Equal(t, "mine", subject.Claims[0].Name)
	_, err = state.Subject("pod/other", "a")
	require.NoError(t, err, "what is named may be in the cluster")
	_, err = clusterstate.New(inCluster).Subject("", "a")
	require.ErrorContains(t, err, "there are 2 pods")
}
