// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// attached is the binding condition of a device: the device is attached to the node of the pod.
const attached = "example.com/attached"

// attachedDevices is a form of whole devices that must be attached to the node before a pod is bound (KEP-5007).
var attachedDevices = form{
	name: "attached devices", gates: []featuregate.Feature{kubefeatures.DRADeviceBindingConditions},
	slices: func() []resourceapi.ResourceSliceSpec {
		devices := row(0, units)
		for i := range devices {
			devices[i].BindsToNode = ptr.To(true)
			devices[i].BindingConditions, devices[i].BindingFailureConditions = []string{attached}, []string{"example.com/failed"}
		}
		return []resourceapi.ResourceSliceSpec{{Devices: devices}}
	},
	unit: wholeDevices.unit,
	all:  wholeDevices.all,
}

// awaitDevices waits until a claim has devices and is reserved for a pod.
func (s *scene) awaitDevices(name string) *resourceapi.ResourceClaim {
	s.Helper()
	var claim *resourceapi.ResourceClaim
	env.Until(s, "claim "+name+" has devices and a user", func(context.Context) (bool, error) {
		claim = s.Claim(s, name)
		return claim.Status.Allocation != nil && len(claim.Status.ReservedFor) > 0, nil
	})
	return claim
}

// attach sets the condition attached for the devices of a claim, as a driver would.
func (s *scene) attach(claim *resourceapi.ResourceClaim) {
	s.Helper()
	claim = claim.DeepCopy()
	for _, result := range claim.Status.Allocation.Devices.Results {
		status := resourceapi.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: attached, Status: metav1.ConditionTrue, Reason: "Attached"})
		claim.Status.Devices = append(claim.Status.Devices, status)
	}
	_, err := s.Client().ResourceV1().ResourceClaims(s.Namespace).UpdateStatus(s.Context(), claim, metav1.UpdateOptions{})
	require.NoError(s, err)
}

// TestVictimWhoseDevicesAreAttached preempts a pod that has devices but is not bound yet. The scheduler does not delete such a
// victim, but puts it back into the queue. The victim's claim must be deallocated, although the victim still exists.
func TestVictimWhoseDevicesAreAttached(t *testing.T) {
	s := newScene(t, "attached", 1, attachedDevices)
	s.run("victim", s.form.unit(s.driver, 0), of("p10"))
	s.awaitDevices("victim")
	s.run("job", s.form.all(s.driver), of("p50"))
	s.attach(s.awaitDevices("job"))
	s.RequireRunning(t, "job")
	s.requireUnbound("victim")
	require.Nil(t, s.Claim(t, "victim").Status.Allocation)
	s.requireEvicted()
	s.requireNothingHeld()
}

// TestFailedBindingOfExtendedResources makes the API server reject the binding of a pod after the scheduler has created the
// pod's claim for extended resources.
func TestFailedBindingOfExtendedResources(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAExtendedResource)
	s := newScene(t, "extended", 1, wholeDevices)
	resource := corev1.ResourceName("example.com/" + s.Namespace)
	classes := s.Client().ResourceV1().DeviceClasses()
	class, err := classes.Get(t.Context(), s.driver, metav1.GetOptions{})
	require.NoError(t, err)
	class.Spec.ExtendedResourceName = ptr.To(string(resource))
	_, err = classes.Update(t.Context(), class, metav1.UpdateOptions{})
	require.NoError(t, err)
	wants := func(n int64) request {
		return func(pod *corev1.Pod) {
			amount := corev1.ResourceList{resource: *apiresource.NewQuantity(n, apiresource.DecimalSI)}
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
		}
	}
	s.pod("victim", nil, wants(units), of("p10"))
	s.RequireRunning(t, "victim")
	s.pod("job", nil, wants(units), of("p50"))
	s.ending("victim")
	refused := s.crossing.Refuse(0, crossing.IsBinding)
	s.end("victim")
	env.Receive(t, "what binds the pod", refused.Reached())
	s.pod("thief", nil, wants(1), of("n50"))
	s.requireKept("thief")
	require.Equal(t, corev1.ConditionTrue, s.record("job").Status)
	refused.Release()
	s.RequireRunning(t, "job")
	s.requireUnbound("thief")
	s.requireEvicted("victim")
	s.requireNothingHeld()
	s.requireNoneInVain()
}

// TestClaimThatIsBeingAllocatedIsNoLoss creates a preemptor with two claims. Another pod gets one of the claims allocated.
// While this allocation is pending, upstream's code rejects the preemptor on all nodes. The devices held for the other claim
// must stay held.
func TestClaimThatIsBeingAllocatedIsNoLoss(t *testing.T) {
	s := newScene(t, "served", 1, wholeDevices)
	victims := s.fill(s.Nodes[0], "victim", "p10")
	s.CreateClaim(t, "own", s.form.unit(s.driver, 0)...)
	s.CreateClaim(t, "shared", s.form.unit(s.driver, 1)...)
	s.pod("job", []string{"own", "shared"}, of("p50"))
	s.ending(victims[:2]...)
	reservation := s.crossing.Stop(0, crossing.IsReservation)
	s.end(victims[1])
	s.pod("other", []string{"shared"}, of("p50"))
	env.Receive(t, "the reservation for the other pod", reservation.Reached())
	s.end(victims[0])
	s.run("thief", s.form.unit(s.driver, 0), of("n50"))
	s.tryAgain(3, "job")
	s.requireKept("thief")
	require.Equal(t, corev1.ConditionTrue, s.record("job").Status)
	reservation.Release()
	s.RequireRunning(t, "other", "job")
	s.requireUnbound("thief")
	s.requireEvicted(victims[:2]...)
	s.requireNothingHeld()
	s.requireNoneInVain()
}
