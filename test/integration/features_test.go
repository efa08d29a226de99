// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/testing/minor"
	"github.com/celset/celset/internal/topology"
)

func newRing(t *testing.T, family topology.Family, n int) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(family, n)
	require.NoError(t, err)
	return ring
}

func TestPodsWithoutConstraintsRunAsEver(t *testing.T) {
	t.Parallel()
	l := newLab(t, "plain", 1)
	driver := l.ring(t, 4).Drivers()[0]
	l.createPod(t, "no-claim", celsetProfile)
	l.run(t, "counts", celsetProfile, request("mla", driver, 3))
	l.requireRunning(t, "no-claim", "counts")
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2"}, l.devicesOf(t, "counts"))
	l.run(t, "too-many", celsetProfile, request("mla", driver, 2))
	l.requireRefused(t, "too-many", "cannot allocate all claims")
}

func TestPodsShareAClaimWithAConstraint(t *testing.T) {
	t.Parallel()
	l := newLab(t, "shared", 2)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	for _, node := range l.nodes {
		l.occupy(t, node, ring, "mla-1")
	}
	l.createClaim(t, "shared", request("mla", driver, 4), constrained("ring4", contiguous(driver, 4)))
	l.createPod(t, "first", celsetProfile, "shared")
	l.createPod(t, "second", celsetProfile, "shared")
	l.requireRunning(t, "first", "second")
	claim := l.claim(t, "shared")
	require.Len(t, claim.Status.ReservedFor, 2)
	require.Equal(t, []string{"mla-2", "mla-3", "mla-4", "mla-5"}, deviceNames(claim))
}

func TestEachClaimOfAPodHasItsConstraint(t *testing.T) {
	t.Parallel()
	l := newLab(t, "two-claims", 1)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	l.occupy(t, l.nodes[0], ring, "mla-1")
	l.createClaim(t, "three", request("mla", driver, 3), constrained("ring", contiguous(driver, 3)))
	l.createClaim(t, "two", request("mla", driver, 2), constrained("ring", contiguous(driver, 2)))
	l.createPod(t, "pod", celsetProfile, "three", "two")
	l.requireRunning(t, "pod")
	require.Equal(t, []string{"mla-2", "mla-3", "mla-4"}, deviceNames(l.claim(t, "three")))
	require.Equal(t, []string{"mla-5", "mla-6"}, deviceNames(l.claim(t, "two")))
}

// TestConstraintCoversRequestsOfTwoDrivers wants a NIC below the PCIe root of each
// GPU. The first two GPUs that are free and the first two NICs have one root in
// common.
func TestConstraintCoversRequestsOfTwoDrivers(t *testing.T) {
	t.Parallel()
	l := newLab(t, "couples", 1)
	gpus, nics := l.family("gpu"), l.family("nic")
	couples, err := topology.NewCouples(gpus, nics, 4)
	require.NoError(t, err)
	l.publish(t, couples, l.nodes[0])
	l.createClass(t, gpus.Driver)
	l.createClass(t, nics.Driver)
	l.occupy(t, l.nodes[0], couples, "gpu-0", "nic-1")

	l.run(t, "any", celsetProfile, request("gpu", gpus.Driver, 2), request("nic", nics.Driver, 2))
	l.requireRunning(t, "any")
	require.False(t, couples.WholeCouples(l.devicesOf(t, "any")))
	l.deletePod(t, "any")
	l.requireFreed(t, "any")

	l.run(t, "coupled", celsetProfile,
		request("gpu", gpus.Driver, 2), request("nic", nics.Driver, 2),
		constrained("nic_per_gpu", fmt.Sprintf(`devices.filter(d, d.driver == %[1]q).all(gpu, devices.exists_one(nic,
			nic.driver == %[2]q && nic.attributes['resource.kubernetes.io'].pcieRoot == gpu.attributes['resource.kubernetes.io'].pcieRoot))`,
			gpus.Driver, nics.Driver), "gpu", "nic"))
	l.requireRunning(t, "coupled")
	devices := l.devicesOf(t, "coupled")
	require.Len(t, devices, 4)
	require.True(t, couples.WholeCouples(devices), "got %v", devices)
}

// TestConstraintStandsBesideAttributeConstraints takes away one of the three
// conditions at a time and shows that each decides.
func TestConstraintStandsBesideAttributeConstraints(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAConsumableCapacity)
	t.Parallel()
	l := newLab(t, "attributes", 1)
	mesh, err := topology.NewMesh(l.family("mesh"), 3, 3)
	require.NoError(t, err)
	driver := mesh.Drivers()[0]
	l.publish(t, mesh, l.nodes[0])
	l.createClass(t, driver)
	l.occupy(t, l.nodes[0], mesh, "mesh-0")

	two := request("mesh", driver, 2)
	sameCol := matchAttribute(driver + "/col")
	otherRow := distinctAttribute(driver + "/row")
	gap := constrained("gap", fmt.Sprintf("devices.map(d, d.attributes[%[1]q].row).max() - devices.map(d, d.attributes[%[1]q].row).min() == 2", driver))
	for _, tc := range []struct {
		name  string
		claim []part
		want  []string
	}{
		{name: "none", claim: []part{two}, want: []string{"mesh-1", "mesh-2"}},
		{name: "without-match", claim: []part{two, otherRow, gap}, want: []string{"mesh-1", "mesh-6"}},
		{name: "without-constraint", claim: []part{two, sameCol, otherRow}, want: []string{"mesh-1", "mesh-4"}},
		{name: "all", claim: []part{two, sameCol, otherRow, gap}, want: []string{"mesh-1", "mesh-7"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l.run(t, tc.name, celsetProfile, tc.claim...)
			l.requireRunning(t, tc.name)
			require.Equal(t, tc.want, l.devicesOf(t, tc.name))
			l.deletePod(t, tc.name)
			l.requireFreed(t, tc.name)
		})
	}
	t.Run("contradiction", func(t *testing.T) {
		l.run(t, "contradiction", celsetProfile, two, otherRow, matchAttribute(driver+"/row"), gap)
		l.requireRefused(t, "contradiction", "constraint gap: no set that the rest of the claim leaves satisfies it")
	})
}

func TestAllDevicesAreJudgedAsOneSet(t *testing.T) {
	t.Parallel()
	l := newLab(t, "all", 1)
	ring := l.ring(t, 4)
	driver := ring.Drivers()[0]
	l.run(t, "false", celsetProfile, requestAll("mla", driver), constrained("five", "size(devices) == 5"))
	l.requireRefused(t, "false", "constraint five: no set of 4 free devices satisfies it")
	l.run(t, "true", celsetProfile, requestAll("mla", driver), constrained("four", "size(devices) == 4"))
	l.requireRunning(t, "true")
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3"}, l.devicesOf(t, "true"))
}
