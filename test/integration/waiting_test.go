// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Pods that wait are woken up by what they wait for: nothing else happens in
// these labs.

func TestPodRunsWhenDevicesThatMakeASetAreFreed(t *testing.T) {
	t.Parallel()
	l := newLab(t, "freed", 1)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	blocker := l.occupy(t, l.nodes[0], ring, "mla-2")
	l.occupy(t, l.nodes[0], ring, "mla-5")

	l.run(t, "waits", celsetProfile, request("mla", driver, 4), constrained("ring4", contiguous(driver, 4)))
	l.requireRefused(t, "waits", "constraint ring4: no set of 4 free devices satisfies it")
	l.requireRefused(t, "waits", "nearest miss: node "+l.nodes[0]+": 6 of 8 devices for request mla are free, but no set satisfies constraint ring4, line 1, column 1: ")
	l.requireRefused(t, "waits", "in the way: claim "+l.namespace+"/")
	l.deletePod(t, blocker)
	l.requireRunning(t, "waits")
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3"}, l.devicesOf(t, "waits"))
}

func TestPodRunsWhenDevicesArePublished(t *testing.T) {
	t.Parallel()
	l := newLab(t, "published", 1)
	ring := newRing(t, l.family("mla"), 8)
	driver := ring.Drivers()[0]
	l.createClass(t, driver)

	l.run(t, "waits", celsetProfile, request("mla", driver, 4), constrained("ring4", contiguous(driver, 4)))
	l.requireRefused(t, "waits", "request mla: 0 of 4 devices")
	l.publish(t, ring, l.nodes[0])
	l.requireRunning(t, "waits")
}

func TestPodRunsWhenItsClassIsCreated(t *testing.T) {
	t.Parallel()
	l := newLab(t, "class", 1)
	ring := newRing(t, l.family("mla"), 8)
	driver := ring.Drivers()[0]
	l.publish(t, ring, l.nodes[0])

	l.run(t, "waits", celsetProfile, request("mla", driver, 4), constrained("ring4", contiguous(driver, 4)))
	l.requireRefused(t, "waits", "device class "+driver+" does not exist")
	l.createClass(t, driver)
	l.requireRunning(t, "waits")
	require.True(t, ring.Contiguous(l.devicesOf(t, "waits")))
}

func TestPodRunsWhenItsClassDefinesTheConstraint(t *testing.T) {
	t.Parallel()
	l := newLab(t, "defined", 1)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]

	l.run(t, "waits", celsetProfile, request("mla", driver, 4), refer("ring4"))
	l.requireRefused(t, "waits", `Not found: "celset.dev/ring4"`)
	l.addToClass(t, driver, definition("ring4", contiguous(driver, 4)))
	l.requireRunning(t, "waits")
	require.True(t, ring.Contiguous(l.devicesOf(t, "waits")))
}

func (l *lab) addToClass(t *testing.T, name string, configuration resourceapi.DeviceConfiguration) {
	t.Helper()
	classes := client().ResourceV1().DeviceClasses()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		class, err := classes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
		_, err = classes.Update(t.Context(), class, metav1.UpdateOptions{})
		return err
	}))
}

// TestPodRunsOnTheNodeThatHasASet has two nodes with equally many free devices.
func TestPodRunsOnTheNodeThatHasASet(t *testing.T) {
	t.Parallel()
	l := newLab(t, "nodes", 2)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	l.occupy(t, l.nodes[0], ring, "mla-2", "mla-5")
	l.occupy(t, l.nodes[1], ring, "mla-0", "mla-1")

	l.run(t, "pod", celsetProfile, request("mla", driver, 4), constrained("ring4", contiguous(driver, 4)))
	l.requireRunning(t, "pod")
	require.Equal(t, l.nodes[1], l.pod(t, "pod").Spec.NodeName)
	require.Equal(t, []string{"mla-2", "mla-3", "mla-4", "mla-5"}, l.devicesOf(t, "pod"))
}
