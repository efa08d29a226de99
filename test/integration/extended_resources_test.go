// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// TestExtendedResourcesAreBackedByDevices tests DeviceClass.spec.extendedResourceName (KEP-5004). The scheduler creates the
// claim for the extended resources of a container, in addition to the pod's own claims, and deallocates all claims when the pod
// ends.
func TestExtendedResourcesAreBackedByDevices(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAExtendedResource)
	forEachVariant(t, "extended", 1, func(t *testing.T, l *lab, v variant) {
		driver, name := l.extendedRing(t, 8)
		l.CreateClaim(t, "set", v.claim(env.Constrained("ring3", env.Contiguous(driver, 3)), env.Request("mla", driver, 3))...)
		pod := l.podWithExtended("pod", v.profile, name, 2, "set")
		l.CreatePodAsIs(t, pod)
		l.RequireRunning(t, "pod")
		require.Equal(t, v.either([]string{"mla-0", "mla-2", "mla-3"}, []string{"mla-2", "mla-3", "mla-4"}), l.DevicesOf(t, "pod"))

		running := l.Pod(t, "pod")
		status := running.Status.ExtendedResourceClaimStatus
		require.NotNil(t, status)
		require.Empty(t, cmp.Diff([]corev1.ContainerExtendedResourceRequest{{
			ContainerName: "main", ResourceName: string(name), RequestName: "container-0-request-0",
		}}, status.RequestMappings))
		claim := l.Claim(t, status.ResourceClaimName)
		require.Equal(t, "true", claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation])
		require.Equal(t, running.UID, claim.Status.ReservedFor[0].UID)
		require.Equal(t, v.either([]string{"mla-4", "mla-5"}, []string{"mla-0", "mla-5"}), env.DeviceNames(claim))

		l.CreatePodAsIs(t, l.podWithExtended("too-many", v.profile, name, 3))
		want := "cannot allocate all claims"
		if v.profile == allProfile {
			want = "request container-0-request-0: too few matching devices are free (2 of 3 requested)"
		}
		l.RequireRefused(t, "too-many", want)
		l.DeletePod(t, "pod")
		l.RequireRunning(t, "too-many")
		l.RequireFreed(t, claim.Name)
	})
}

// TestExtendedResourcesOfTheNodeNeedNoClaim requests an extended resource that a device plugin provides on one node, and DRA
// devices on the other. Only a pod on the second node needs a claim.
func TestExtendedResourcesOfTheNodeNeedNoClaim(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAExtendedResource)
	forEachVariant(t, "plugin", 2, func(t *testing.T, l *lab, v variant) {
		_, name := l.extendedRing(t, 8)
		l.provide(t, l.Nodes[1], name, 2)
		for _, node := range l.Nodes {
			pod := l.podWithExtended(node, v.profile, name, 2)
			pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
			l.CreatePodAsIs(t, pod)
		}
		l.RequireRunning(t, l.Nodes...)
		require.NotNil(t, l.Pod(t, l.Nodes[0]).Status.ExtendedResourceClaimStatus)
		require.Nil(t, l.Pod(t, l.Nodes[1]).Status.ExtendedResourceClaimStatus)
	})
}

// extendedRing publishes a ring on each node, with mla-1 in use. It returns the ring's driver and the extended resource of its
// class.
func (l *lab) extendedRing(t *testing.T, n int) (driver string, name corev1.ResourceName) {
	t.Helper()
	family := l.Family("mla")
	ring, err := topology.NewRing(family, n)
	require.NoError(t, err)
	l.Publish(t, ring, l.Nodes...)
	name = corev1.ResourceName(family.Driver + "/ring")
	spec := env.ClassOf(family.Driver)
	extended := string(name)
	spec.ExtendedResourceName = &extended
	l.CreateClassWithSpec(t, family.Driver, spec)
	for _, node := range l.Nodes {
		l.Occupy(t, node, ring, "mla-1")
	}
	return family.Driver, name
}

// podWithExtended returns a pod for the lab's nodes that requests n of an extended resource, and uses the claims.
func (l *lab) podWithExtended(name, profile string, extended corev1.ResourceName, n int64, claims ...string) *corev1.Pod {
	pod := env.Pod(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
	amount := corev1.ResourceList{extended: *resource.NewQuantity(n, resource.DecimalSI)}
	pod.Spec.Containers[0].Resources.Requests = amount
	pod.Spec.Containers[0].Resources.Limits = amount
	return pod
}

// provide adds n of an extended resource to a node's capacity, as a device plugin would. It waits until the scheduler has seen
// the change.
func (l *lab) provide(t *testing.T, node string, name corev1.ResourceName, n int64) {
	t.Helper()
	patch := fmt.Sprintf(`{"status": {"capacity": {%[1]q: "%[2]d"}, "allocatable": {%[1]q: "%[2]d"}}}`, name, n)
	_, err := client().CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	for i := 0; ; i++ {
		probe := l.podWithExtended(fmt.Sprintf("probe-%d", i), env.StockProfile, name, n)
		probe.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		l.CreatePodAsIs(t, probe)
		l.RequireRunning(t, probe.Name)
		status := l.Pod(t, probe.Name).Status.ExtendedResourceClaimStatus
		l.DeletePod(t, probe.Name)
		env.Eventually(t, "the probe ends", func(ctx context.Context) (string, error) { return l.exists(ctx, probe.Name) })
		if status == nil {
			return
		}
		l.RequireFreed(t, status.ResourceClaimName)
	}
}
