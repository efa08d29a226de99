// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// In these tests, a pod has devices but is not bound yet, because it waits for binding conditions. Meanwhile the test deletes
// an object.

// TestClaimDeletedWhileBinding deletes the claim and removes its finalizer. The pod must be bound after the test has created a
// claim of the same name.
func TestClaimDeletedWhileBinding(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceBindingConditions)
	forEachVariant(t, "claim-gone", 1, func(t *testing.T, l *lab, v variant) {
		l.runOnFabric(t, "pod", v)
		first := l.awaitAttachment(t, "pod", nil)
		claims := client().ResourceV1().ResourceClaims(l.Namespace)
		require.NoError(t, claims.Delete(t.Context(), "pod", metav1.DeleteOptions{}))
		_, err := claims.Patch(t.Context(), "pod", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		l.AwaitEvent(t, l.Pod(t, "pod"), "FailedScheduling", "could not find ResourceClaim")

		again := first.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Name: "pod"}
		_, err = claims.Create(t.Context(), again, metav1.CreateOptions{})
		require.NoError(t, err)
		second := l.awaitAttachment(t, "pod", first)
		require.NotEqual(t, first.UID, second.UID)
		require.Equal(t, env.DeviceNames(first), env.DeviceNames(second), "the devices were given back")
		l.report(t, second, attached, env.DeviceNames(second)...)
		l.RequireRunning(t, "pod")
	})
}

// TestClaimMarkedForDeletionWhileBindingStaysForItsPod deletes the claim but keeps its finalizer. The pod must be bound, and
// the claim must stay until the pod has ended.
func TestClaimMarkedForDeletionWhileBindingStaysForItsPod(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceBindingConditions)
	forEachVariant(t, "claim-marked", 1, func(t *testing.T, l *lab, v variant) {
		l.runOnFabric(t, "pod", v)
		l.awaitAttachment(t, "pod", nil)
		require.NoError(t, client().ResourceV1().ResourceClaims(l.Namespace).Delete(t.Context(), "pod", metav1.DeleteOptions{}))
		claim := l.Claim(t, "pod")
		require.NotNil(t, claim.DeletionTimestamp)
		l.report(t, claim, attached, env.DeviceNames(claim)...)
		l.RequireRunning(t, "pod")
		l.DeletePod(t, "pod")
		l.RequireFreed(t, "pod")
	})
}

// TestPodDeletedWhileBinding deletes a pod that waits for its devices. The scheduler ignores the deletion and keeps the devices
// until the binding timeout. Afterwards they are free. Other pods that wait for devices are not retried at that time, with
// either allocator, because upstream has no event for it.
func TestPodDeletedWhileBinding(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceBindingConditions)
	t.Parallel()
	for _, v := range []variant{
		{name: "upstream's allocator", profile: hastyProfile},
		{name: "our allocator", profile: hastyProfile, constrained: true},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "pod-gone", 1)
			driver := l.runOnFabric(t, "pod", v)
			first := l.awaitAttachment(t, "pod", nil)
			pod := l.Pod(t, "pod")
			l.DeletePod(t, "pod")
			env.Eventually(t, "the pod goes", func(ctx context.Context) (string, error) { return l.exists(ctx, "pod") })
			l.RequireFreed(t, "pod")
			l.AwaitEvent(t, pod, "FailedScheduling", "device binding timeout")

			l.Run(t, "next", v.profile, v.claim(env.Constrained("ring6", env.Contiguous(driver, 6)), env.Request("mla", driver, 6))...)
			second := l.awaitAttachment(t, "next", nil)
			require.Subset(t, env.DeviceNames(second), env.DeviceNames(first))
			l.report(t, second, attached, env.DeviceNames(second)...)
			l.RequireRunning(t, "next")
		})
	}
}
