// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/realnode"
)

// connectedResource is an extended resource that a container can request without a claim. Its class requires by default that
// several devices are connected.
const connectedResource corev1.ResourceName = "celset.example/mla"

const connectedClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: connected.celset.example}
spec:
  extendedResourceName: celset.example/mla
  selectors:
  - cel: {expression: "device.driver == 'mla.example.com'"}
  config:
  - opaque:
      driver: celset.dev
      parameters:
        apiVersion: celset.dev/v1alpha1
        kind: CELDeviceConstraint
        name: row
        enforcement: Always
        expression: |
          devices.map(d, d.attributes['mla.example.com'].index).max() -
          devices.map(d, d.attributes['mla.example.com'].index).min() == size(devices) - 1
`

// TestContainerWithoutAClaimSeesConnectedDevices runs containers that request four devices as an extended resource. mla-1 is in
// use, so the first four free devices are not connected. A second pod waits for the first pod's set, and gets it.
func TestContainerWithoutAClaimSeesConnectedDevices(t *testing.T) {
	cluster.ApplyText(t, connectedClass)
	t.Cleanup(func() {
		require.NoError(t, client().ResourceV1().DeviceClasses().Delete(context.Background(), "connected.celset.example", metav1.DeleteOptions{}))
	})
	removeAtEnd(t, "first", "second", "taken")
	occupyRealNode(t, "taken", "mla-1")
	require.False(t, ring.Holds([]string{"mla-0", "mla-2", "mla-3", "mla-4"}), "else the constraint makes no difference here")
	connected := []string{"mla-2", "mla-3", "mla-4", "mla-5"}

	runExtended(t, "first")
	_, err := waitRunning(t.Context(), "first")
	require.NoError(t, err)
	devices, err := ring.check(t.Context(), "first")
	require.NoError(t, err)
	require.Equal(t, connected, devices)

	runExtended(t, "second")
	require.NoError(t, waitEvent(t.Context(), "second", "FailedScheduling", "request container-0-request-0: too few matching devices are free (3 of 4 requested)"))
	require.NoError(t, remove(t.Context(), "first"))
	_, err = waitRunning(t.Context(), "second")
	require.NoError(t, err)
	devices, err = ring.check(t.Context(), "second")
	require.NoError(t, err)
	require.Equal(t, connected, devices)
}

// occupyRealNode creates a pod on the real node that takes devices of the ring.
func occupyRealNode(t *testing.T, name string, devices ...string) {
	t.Helper()
	claim, pod, err := ring.Occupant(name, cluster.node.Name(), devices...)
	require.NoError(t, err)
	realnode.Adapt(&pod.Spec)
	// The garbage collector deletes the claim together with the pod.
	pod, err = client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	_, err = client().ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = waitRunning(t.Context(), name)
	require.NoError(t, err)
}

// runExtended creates a pod without a claim for the real node. Its container requests four devices in its limits.
func runExtended(t *testing.T, name string) {
	t.Helper()
	_, pod, err := ring.read()
	require.NoError(t, err)
	pod.Name = name
	realnode.Adapt(&pod.Spec)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: cluster.node.Name()}
	pod.Spec.ResourceClaims = nil
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Limits: corev1.ResourceList{connectedResource: resource.MustParse("4")},
	}
	_, err = client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}
