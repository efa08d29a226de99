// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/realnode"
)

// TestDoubleAllocationIsRefused forges what no scheduler should do: another claim gets
// the devices of a running pod. Without this test, it would mean little that the drivers
// refuse nothing in the others.
func TestDoubleAllocationIsRefused(t *testing.T) {
	removeAtEnd(t, "holder", "intruder")
	before := refused(t, ring)
	devices := ring.mustRun(t, "holder")
	holder, err := waitRunning(t.Context(), "holder")
	require.NoError(t, err)
	name, err := claimOf(holder)
	require.NoError(t, err)
	held, err := client().ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)

	forged := forge(t, held)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "intruder"},
		Spec: corev1.PodSpec{
			// No scheduler is to look at it.
			NodeName:       cluster.node.Name(),
			ResourceClaims: []corev1.PodResourceClaim{{Name: "mla", ResourceClaimName: &forged.Name}},
			Containers: []corev1.Container{{
				Name:      "main",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "mla"}}},
			}},
		},
	}
	realnode.Adapt(&pod.Spec)
	intruder, err := client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	forged.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: intruder.Name, UID: intruder.UID}}
	_, err = client().ResourceV1().ResourceClaims(namespace).UpdateStatus(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)

	require.NoError(t, waitEvent(t.Context(), "intruder", "FailedPrepareDynamicResources", "double allocation",
		devices[0], forged.Name, held.Name))
	require.Greater(t, refused(t, ring), before)
	sameContainer(t, holder)
	got, err := client().CoreV1().Pods(namespace).Get(t.Context(), "intruder", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodPending, got.Status.Phase)
}

// forge creates a claim with the devices of another one.
func forge(t *testing.T, from *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	t.Helper()
	claims := client().ResourceV1().ResourceClaims(namespace)
	forged, err := claims.Create(t.Context(), &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: map[string]string{forgedLabel: ""}},
		Spec:       from.Spec,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, claims.Delete(context.Background(), forged.Name, metav1.DeleteOptions{}))
	})
	forged.Status.Allocation = from.Status.Allocation
	return forged
}
