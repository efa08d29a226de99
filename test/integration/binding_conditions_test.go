// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// Condition types of devices that must be attached to a node before a pod can use them.
const (
	attached     = "Attached"
	attachFailed = "AttachFailed"
)

// In these tests, the test acts as the driver of devices with binding conditions (KEP-5007).

func TestPodBindsWhenItsDevicesAreReady(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceBindingConditions)
	forEachVariant(t, "ready", 2, func(t *testing.T, l *lab, v variant) {
		l.runOnFabric(t, "pod", v)
		claim := l.awaitAttachment(t, "pod", nil)
		devices := env.DeviceNames(claim)
		require.Equal(t, []string{"mla-0", "mla-1", "mla-2"}, devices)
		require.NotNil(t, claim.Status.Allocation.AllocationTimestamp)
		for _, result := range claim.Status.Allocation.Devices.Results {
			require.Equal(t, []string{attached}, result.BindingConditions)
			require.Equal(t, []string{attachFailed}, result.BindingFailureConditions)
		}
		l.AwaitEvent(t, l.Pod(t, "pod"), "BindingConditionsPending", "waiting for binding conditions")
		l.report(t, claim, attached, devices...)
		l.RequireRunning(t, "pod")
		require.Empty(t, cmp.Diff(claim.Status.Allocation, l.Claim(t, "pod").Status.Allocation), "the allocation")
		require.Empty(t, cmp.Diff(onlyNode(l.Pod(t, "pod").Spec.NodeName), claim.Status.Allocation.NodeSelector),
			"devices of a fabric bind to the node")
	})
}

// TestFailedDevicesAreGivenBackAndTriedAgain makes one device of three fail. Upstream expects the driver to withdraw such a
// device. Here the driver keeps it, and it works the second time. The failing device is the first of the three, because the
// plugin stops looking at a device that is neither ready nor failed.
func TestFailedDevicesAreGivenBackAndTriedAgain(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceBindingConditions)
	forEachVariant(t, "failed", 1, func(t *testing.T, l *lab, v variant) {
		driver := l.runOnFabric(t, "pod", v)
		first := l.awaitAttachment(t, "pod", nil)
		l.report(t, first, attachFailed, "mla-0")
		l.AwaitEvent(t, l.Pod(t, "pod"), "FailedScheduling", "device binding failed", "reason=Reported")

		second := l.awaitAttachment(t, "pod", first)
		require.Equal(t, env.DeviceNames(first), env.DeviceNames(second))
		require.Empty(t, second.Status.Devices, "what the driver reported about the first allocation")
		l.report(t, second, attached, env.DeviceNames(second)...)
		l.RequireRunning(t, "pod")
		requireBindingCount(t, v.profile, driver, "failure")
		requireBindingCount(t, v.profile, driver, "success")
	})
}

// TestDevicesThatAreNotReadyInTimeAreGivenBackAndTriedAgain makes one device of three exceed the profile's binding timeout.
func TestDevicesThatAreNotReadyInTimeAreGivenBackAndTriedAgain(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceBindingConditions)
	t.Parallel()
	for _, v := range []variant{
		{name: "upstream's allocator", profile: hastyProfile},
		{name: "our allocator", profile: hastyProfile, constrained: true},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "late", 1)
			driver := l.runOnFabric(t, "pod", v)
			first := l.awaitAttachment(t, "pod", nil)
			l.report(t, first, attached, "mla-0", "mla-2")
			l.AwaitEvent(t, l.Pod(t, "pod"), "FailedScheduling", "device binding timeout")

			second := l.awaitAttachment(t, "pod", first)
			allowed := second.Status.Allocation.AllocationTimestamp.Sub(first.Status.Allocation.AllocationTimestamp.Time)
			require.GreaterOrEqual(t, allowed+time.Second, hastyBindingTimeout, "timestamps have whole seconds")
			l.report(t, second, attached, env.DeviceNames(second)...)
			l.RequireRunning(t, "pod")
			requireBindingCount(t, v.profile, driver, "timeout")
		})
	}
}

// runOnFabric creates a pod that requests three of six devices, and returns the devices' driver. Each device can be attached to
// any node.
func (l *lab) runOnFabric(t *testing.T, pod string, v variant) (driver string) {
	t.Helper()
	ring := newRing(t, l.Family("mla"), 6)
	driver = ring.Drivers()[0]
	l.CreateClass(t, driver)
	slices, err := ring.ResourceSlices(l.Namespace)
	require.NoError(t, err)
	require.Len(t, slices, 1)
	fabric := slices[0]
	fabric.Spec.NodeName = nil
	fabric.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: env.LabLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{l.Namespace}}},
	}}}
	for i := range fabric.Spec.Devices {
		device := &fabric.Spec.Devices[i]
		device.BindsToNode = new(true)
		device.BindingConditions = []string{attached}
		device.BindingFailureConditions = []string{attachFailed}
	}
	cluster.CreateSlice(t, fabric)
	l.Run(t, pod, v.profile, v.claim(env.Constrained("ring3", env.Contiguous(driver, 3)), env.Request("mla", driver, 3))...)
	return driver
}

// awaitAttachment waits until the claim is allocated, and returns it. If before is not nil, the allocation must differ from the
// one in before. The pod of the same name must not be bound yet.
func (l *lab) awaitAttachment(t *testing.T, name string, before *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	t.Helper()
	var claim *resourceapi.ResourceClaim
	env.Eventually(t, "claim "+name+" gets devices", func(context.Context) (string, error) {
		claim = l.Claim(t, name)
		switch allocation := claim.Status.Allocation; {
		case allocation == nil || len(claim.Status.ReservedFor) == 0:
			return "no allocation, or no user", nil
		case before != nil && before.UID == claim.UID && allocation.AllocationTimestamp.Equal(before.Status.Allocation.AllocationTimestamp):
			return "the allocation is still the first", nil
		default:
			return "", nil
		}
	})
	require.Empty(t, l.Pod(t, name).Spec.NodeName)
	return claim
}

// report sets a condition of the devices in the claim's status to True, as their driver would.
func (l *lab) report(t *testing.T, claim *resourceapi.ResourceClaim, condition string, devices ...string) {
	t.Helper()
	claim = claim.DeepCopy()
	for _, result := range claim.Status.Allocation.Devices.Results {
		if !slices.Contains(devices, result.Device) {
			continue
		}
		status := resourceapi.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Reported"})
		claim.Status.Devices = append(claim.Status.Devices, status)
	}
	require.Len(t, claim.Status.Devices, len(devices))
	_, err := client().ResourceV1().ResourceClaims(l.Namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// requireBindingCount checks that upstream's metric counts the results of binding in a profile of ours.
func requireBindingCount(t *testing.T, profile, driver, status string) {
	t.Helper()
	metrics, err := cluster.scheduler.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Contains(t, string(metrics), fmt.Sprintf(
		"scheduler_dra_bindingconditions_allocations_total{driver=%q,profile=%q,status=%q} ", driver, profile, status))
}
