// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestPodsOfAllProfilesShareAClaim has the first of three pods decide about node and
// devices. A pod that can't go there waits; it does not take the claim from others.
func TestPodsOfAllProfilesShareAClaim(t *testing.T) {
	forEachVariant(t, "sharing", 2, func(t *testing.T, l *lab, v variant) {
		ring := l.ring(t, 8)
		driver := ring.Drivers()[0]
		l.occupy(t, l.nodes[1], ring, "mla-1")
		l.createClaim(t, "shared", v.claim(constrained("ring4", contiguous(driver, 4)), request("mla", driver, 4))...)
		l.createPodOn(t, l.nodes[1], "first", v.profile, "shared")
		l.requireRunning(t, "first")
		before := l.claim(t, "shared").Status.Allocation
		require.Equal(t, v.either([]string{"mla-0", "mla-2", "mla-3", "mla-4"}, []string{"mla-2", "mla-3", "mla-4", "mla-5"}), l.devicesOf(t, "first"))

		for _, profile := range []string{stockProfile, celsetProfile, allProfile} {
			l.createPod(t, profile, profile, "shared")
			l.requireRunning(t, profile)
			require.Equal(t, l.nodes[1], l.pod(t, profile).Spec.NodeName)
		}
		l.createPodOn(t, l.nodes[0], "elsewhere", v.profile, "shared")
		l.awaitEvent(t, l.pod(t, "elsewhere"), "FailedScheduling", "resourceclaim not available on the node")
		claim := l.claim(t, "shared")
		require.Empty(t, cmp.Diff(before, claim.Status.Allocation))
		require.Len(t, claim.Status.ReservedFor, 4)

		// Now it may go where the pod can be.
		for _, pod := range []string{"first", stockProfile, celsetProfile, allProfile} {
			l.deletePod(t, pod)
		}
		l.requireRunning(t, "elsewhere")
		require.Equal(t, l.nodes[0], l.pod(t, "elsewhere").Spec.NodeName)
		require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3"}, l.devicesOf(t, "elsewhere"))
	})
}

// TestPodFollowsAnAllocationMadeElsewhere has somebody else allocate the claim, and
// not as a constraint wants it: what is allocated is not judged again.
func TestPodFollowsAnAllocationMadeElsewhere(t *testing.T) {
	forEachVariant(t, "allocated", 2, func(t *testing.T, l *lab, v variant) {
		driver := l.ring(t, 4).Drivers()[0]
		pair := constrained("pair", contiguous(driver, 2))
		allocated := l.allocate(t, l.createClaim(t, "allocated", v.claim(pair, request("mla", driver, 2))...), driver, l.nodes[1], "mla-0", "mla-3")

		// Nobody else gets them, although no pod uses them.
		l.createClaim(t, "other", v.claim(pair, request("mla", driver, 2))...)
		l.createPodOn(t, l.nodes[1], "other", v.profile, "other")
		l.requireRunning(t, "other")
		require.Equal(t, []string{"mla-1", "mla-2"}, l.devicesOf(t, "other"))

		l.createPod(t, "pod", v.profile, "allocated")
		l.requireRunning(t, "pod")
		require.Equal(t, l.nodes[1], l.pod(t, "pod").Spec.NodeName)
		require.Equal(t, deviceNames(allocated), l.devicesOf(t, "pod"))
	})
}

// TestClaimIsDeallocatedForAPodThatMustGoElsewhere has an allocation that nobody
// uses, on a node where the pod can't be.
func TestClaimIsDeallocatedForAPodThatMustGoElsewhere(t *testing.T) {
	forEachVariant(t, "deallocated", 2, func(t *testing.T, l *lab, v variant) {
		ring := l.ring(t, 4)
		driver := ring.Drivers()[0]
		l.occupy(t, l.nodes[0], ring, "mla-1")
		claim := l.createClaim(t, "claim", v.claim(constrained("pair", contiguous(driver, 2)), request("mla", driver, 2))...)
		l.allocate(t, claim, driver, l.nodes[1], "mla-0", "mla-1")

		l.createPodOn(t, l.nodes[0], "pod", v.profile, "claim")
		l.requireRunning(t, "pod")
		require.Equal(t, v.either([]string{"mla-0", "mla-2"}, []string{"mla-2", "mla-3"}), l.devicesOf(t, "pod"))
		require.Equal(t, l.nodes[0], l.claim(t, "claim").Status.Allocation.Devices.Results[0].Pool)

		// What it had is free.
		l.createClaim(t, "rest", request("mla", driver, 4))
		l.createPodOn(t, l.nodes[1], "rest", v.profile, "rest")
		l.requireRunning(t, "rest")
	})
}

// allocate gives a claim with one request devices of a node, past all schedulers.
// It has to set the time as they do: where that is missing, a scheduler that
// supports binding conditions adds it when a pod is to use the claim, and the API
// server refuses any change of an allocation.
func (l *lab) allocate(t *testing.T, claim *resourceapi.ResourceClaim, driver, node string, devices ...string) *resourceapi.ResourceClaim {
	t.Helper()
	claims := client().ResourceV1().ResourceClaims(l.namespace)
	claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
	claim, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	claim.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: ptr.To(metav1.Now()), NodeSelector: onlyNode(node)}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: claim.Spec.Devices.Requests[0].Name, Driver: driver, Pool: node, Device: device,
		})
	}
	claim, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	return claim
}

// onlyNode is the node selector of an allocation that holds on one node.
func onlyNode(node string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
	}}}}}
}
