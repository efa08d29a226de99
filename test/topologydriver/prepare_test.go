// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/utils/ptr"
	cdispec "tags.cncf.io/container-device-interface/specs-go"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/topologydriver/cdi"
	"github.com/celset/celset/test/topologydriver/checkpoint"
)

// prepareOne prepares a claim and returns its result.
func prepareOne(t require.TestingT, d *Driver, claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	results, err := d.PrepareResourceClaims(backgroundOf(t), []*resourceapi.ResourceClaim{claim})
	require.NoError(t, err)
	require.Len(t, results, 1)
	return results[claim.UID].Devices, results[claim.UID].Err
}

func unprepareOne(t require.TestingT, d *Driver, claim *resourceapi.ResourceClaim) error {
	results, err := d.UnprepareResourceClaims(backgroundOf(t), []kubeletplugin.NamespacedObject{{
		NamespacedName: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, UID: claim.UID,
	}})
	require.NoError(t, err)
	require.Contains(t, results, claim.UID)
	return results[claim.UID]
}

// environment returns the environment variables of a container that uses all devices of the claim.
func (f *fixture) environment(t require.TestingT, claim types.UID) []string {
	content, err := os.ReadFile(filepath.Join(f.options.CDIDir, driver+"-device_"+string(claim)+".json"))
	require.NoError(t, err)
	var spec cdispec.Spec
	require.NoError(t, json.Unmarshal(content, &spec))
	var environment []string
	for _, device := range spec.Devices {
		environment = append(environment, device.ContainerEdits.Env...)
	}
	return environment
}

// measured requires that the named metrics have the wanted values.
func (f *fixture) measured(t *testing.T, want string, names ...string) {
	t.Helper()
	for i, name := range names {
		names[i] = subsystem + "_" + name
	}
	require.NoError(t, testutil.GatherAndCompare(f.registry, strings.NewReader(want), names...))
}

func TestPrepare(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	d := f.driver(t)
	claim := allocatedClaim("a", "mla-2", "mla-3")
	want := []kubeletplugin.Device{
		{Requests: []string{"mla"}, PoolName: node, DeviceName: "mla-2", CDIDeviceIDs: []string{"mla.example.com/device=uid-a-mla-2"}},
		{Requests: []string{"mla"}, PoolName: node, DeviceName: "mla-3", CDIDeviceIDs: []string{"mla.example.com/device=uid-a-mla-3"}},
	}
	for range 2 {
		devices, err := prepareOne(t, d, claim)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, devices))
		require.Equal(t, []string{
			"CELSET_DEVICE_MLA_EXAMPLE_COM__MLA_2=driver=mla.example.com pool=node-1 device=mla-2 index=2",
			"CELSET_DEVICE_MLA_EXAMPLE_COM__MLA_3=driver=mla.example.com pool=node-1 device=mla-3 index=3",
		}, f.environment(t, claim.UID))
	}

	t.Run("again after the specs are lost and the topology is another", func(t *testing.T) {
		require.NoError(t, os.RemoveAll(f.options.CDIDir))
		f.options.Topology = ring(t, 3)
		devices, err := prepareOne(t, f.driver(t), claim)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, devices))
		require.Contains(t, f.environment(t, claim.UID)[1], "device=mla-3 index=3", "as it was when the claim was prepared")
	})
	t.Run("unprepare", func(t *testing.T) {
		for range 2 {
			require.NoError(t, unprepareOne(t, f.driver(t), claim))
			entries, err := os.ReadDir(f.options.CDIDir)
			require.NoError(t, err)
			require.Empty(t, entries)
			state, err := d.load()
			require.NoError(t, err)
			require.Empty(t, state.Claims)
		}
	})
}

// TestWhatIsNotOurs checks that the driver ignores devices and configuration of other drivers.
func TestWhatIsNotOurs(t *testing.T) {
	opaque := func(driver string) resourceapi.DeviceAllocationConfiguration {
		return resourceapi.DeviceAllocationConfiguration{
			Source: resourceapi.AllocationConfigSourceClaim,
			DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
				Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint"}`)},
			}},
		}
	}
	f := newFixture(t, ring(t, 8))
	d := f.driver(t)

	claim := allocatedClaim("a", "mla-0")
	allocation := &claim.Status.Allocation.Devices
	allocation.Config = []resourceapi.DeviceAllocationConfiguration{opaque("celset.dev"), opaque("gpu.example.com"), {}}
	allocation.Results = append(allocation.Results, resourceapi.DeviceRequestAllocationResult{
		Request: "gpu", Driver: "gpu.example.com", Pool: "elsewhere", Device: "mla-1",
	})
	devices, err := prepareOne(t, d, claim)
	require.NoError(t, err)
	require.Len(t, devices, 1)
	_, err = prepareOne(t, d, allocatedClaim("b", "mla-1"))
	require.NoError(t, err, "another driver's device of the same name is another device")

	allocation.Config = append(allocation.Config, opaque(driver))
	_, err = prepareOne(t, d, claim)
	require.ErrorContains(t, err, "driver mla.example.com: claim default/a: status.allocation.devices.config[3] (FromClaim) has parameters for this driver, which supports no parameters")

	devices, err = prepareOne(t, d, allocatedClaim("none"))
	require.NoError(t, err)
	require.Empty(t, devices)
	state, err := d.load()
	require.NoError(t, err)
	require.Len(t, state.Claims, 2, "a claim without devices of the driver is not its business")
}

func TestRefusals(t *testing.T) {
	elsewhere := allocatedClaim("elsewhere", "mla-0")
	elsewhere.Status.Allocation.Devices.Results[0].Pool = "node-2"
	unallocated := allocatedClaim("unallocated")
	unallocated.Status.Allocation = nil
	for name, test := range map[string]struct {
		claim *resourceapi.ResourceClaim
		err   string
	}{
		"a device that is not there": {allocatedClaim("a", "mla-1", "mla-8"), "claim default/a: device mla-8 of pool node-1 is not one of the 8 devices of this driver"},
		"a pool of another node":     {elsewhere, `results[0]: device mla-0 is of pool "node-2", but the pool of this node is "node-1"`},
		"no allocation":              {unallocated, "is not allocated"},
		"a device twice":             {allocatedClaim("a", "mla-1", "mla-1"), "is allocated to claim default/a (UID uid-a) twice"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ring(t, 8))
			_, err := prepareOne(t, f.driver(t), test.claim)
			require.ErrorContains(t, err, test.err)
			entries, err := os.ReadDir(f.options.CDIDir)
			require.NoError(t, err)
			require.Empty(t, entries)
			_, err = prepareOne(t, f.driver(t), allocatedClaim("b", "mla-1"))
			require.NoError(t, err, "what was refused holds no device")
		})
	}
}

func TestDoubleAllocation(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	_, err := prepareOne(t, f.driver(t), allocatedClaim("a", "mla-0", "mla-1", "mla-2"))
	require.NoError(t, err)

	// A single call with three claims. The driver must refuse only the second.
	claims := []*resourceapi.ResourceClaim{allocatedClaim("b", "mla-3"), allocatedClaim("c", "mla-4", "mla-2", "mla-1"), allocatedClaim("d", "mla-4")}
	results, err := f.driver(t).PrepareResourceClaims(t.Context(), claims)
	require.NoError(t, err)
	require.NoError(t, results["uid-b"].Err)
	require.NoError(t, results["uid-d"].Err)
	const then = "delete the pods of one of the two claims; if the second claim no longer exists, drain the node, delete "
	checkpointPath := f.driver(t).checkpoint.Path()
	require.EqualError(t, results["uid-c"].Err, "driver mla.example.com: claim default/c: "+
		"double allocation: device mla-2 of pool node-1, driver mla.example.com, is allocated to claim default/c (UID uid-c), but is prepared for claim default/a (UID uid-a): "+then+checkpointPath+" and restart the driver\n"+
		"double allocation: device mla-1 of pool node-1, driver mla.example.com, is allocated to claim default/c (UID uid-c), but is prepared for claim default/a (UID uid-a): "+then+checkpointPath+" and restart the driver")
	var double *DoubleAllocationError
	require.ErrorAs(t, results["uid-c"].Err, &double)
	require.Equal(t, types.UID("uid-a"), double.HolderUID)
	require.NoFileExists(t, f.driver(t).specs.Path("uid-c"))
	f.measured(t, `
		# HELP celset_topology_driver_double_allocations_total [ALPHA] Number of times that the driver refused to prepare a device for a claim because the device is prepared for another claim.
		# TYPE celset_topology_driver_double_allocations_total counter
		celset_topology_driver_double_allocations_total{driver="mla.example.com"} 2
		# HELP celset_topology_driver_prepared_claims [ALPHA] Number of prepared claims on the node.
		# TYPE celset_topology_driver_prepared_claims gauge
		celset_topology_driver_prepared_claims{driver="mla.example.com"} 3
		# HELP celset_topology_driver_prepared_devices [ALPHA] Number of devices that are prepared for a claim on the node. Devices prepared with admin access do not count.
		# TYPE celset_topology_driver_prepared_devices gauge
		celset_topology_driver_prepared_devices{driver="mla.example.com"} 5
	`, "double_allocations_total", "prepared_claims", "prepared_devices")

	require.NoError(t, unprepareOne(t, f.driver(t), allocatedClaim("a")))
	require.NoError(t, unprepareOne(t, f.driver(t), allocatedClaim("d")))
	_, err = prepareOne(t, f.driver(t), claims[1])
	require.NoError(t, err)
}

// TestDeviceInTwoRequests prepares a claim that has a device in several requests with admin access. The spec must contain the
// device only once, because container runtimes reject a spec with two devices of one name.
func TestDeviceInTwoRequests(t *testing.T) {
	claim := allocatedClaim("a", "mla-0", "mla-0")
	results := claim.Status.Allocation.Devices.Results
	results[0].Request, results[1].Request = "one", "two/sub"
	results[0].AdminAccess, results[1].AdminAccess = ptr.To(true), ptr.To(true)
	f := newFixture(t, ring(t, 8))
	devices, err := prepareOne(t, f.driver(t), claim)
	require.NoError(t, err)
	require.Len(t, devices, 2)
	require.Equal(t, []string{"two/sub"}, devices[1].Requests)
	require.Equal(t, devices[0].CDIDeviceIDs, devices[1].CDIDeviceIDs)
	require.Len(t, f.environment(t, claim.UID), 1)
}

// TestCorruptCheckpoint checks that a driver with an unreadable checkpoint prepares no claims, and that no driver starts with
// it.
func TestCorruptCheckpoint(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	d := f.driver(t)
	_, err := prepareOne(t, d, allocatedClaim("a", "mla-0"))
	require.NoError(t, err)
	content, err := os.ReadFile(d.checkpoint.Path())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.checkpoint.Path(), []byte(strings.Replace(string(content), "mla-0", "mla-7", 1)), 0o600))

	var corrupt *checkpoint.CorruptError
	_, err = d.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{allocatedClaim("b", "mla-0")})
	require.ErrorAs(t, err, &corrupt)
	_, err = d.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: "uid-a"}})
	require.ErrorAs(t, err, &corrupt)
	_, err = Start(t.Context(), f.options)
	require.ErrorAs(t, err, &corrupt)
	require.ErrorContains(t, err, "driver mla.example.com: checkpoint "+d.checkpoint.Path())

	// The error message advises to remove the file. Afterwards the driver must work, and the kubelet must be able to unprepare
	// claims.
	require.NoError(t, os.Remove(d.checkpoint.Path()))
	require.NoError(t, unprepareOne(t, f.driver(t), allocatedClaim("a")))
	require.NoFileExists(t, d.specs.Path("uid-a"))
}

// TestFailingWrites makes writes of the checkpoint and of CDI specs fail. The driver must return errors. When writes succeed
// again, the claims can be prepared and unprepared.
func TestFailingWrites(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	d := f.driver(t)
	claim := allocatedClaim("a", "mla-0")
	blocked := func(path string, do func()) {
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o750))
		do()
		require.NoError(t, os.RemoveAll(path))
	}
	blocked(d.specs.Path(claim.UID), func() {
		_, err := prepareOne(t, d, claim)
		require.ErrorContains(t, err, "CDI spec "+d.specs.Path(claim.UID))
		require.ErrorContains(t, unprepareOne(t, d, claim), "CDI spec "+d.specs.Path(claim.UID))
		_, err = prepareOne(t, d, allocatedClaim("b", "mla-0"))
		require.ErrorContains(t, err, "double allocation", "the first may have got it")
	})
	_, err := prepareOne(t, d, claim)
	require.NoError(t, err)
	require.NoError(t, unprepareOne(t, d, claim))

	require.NoError(t, os.RemoveAll(f.options.CDIDir))
	require.NoError(t, os.WriteFile(f.options.CDIDir, nil, 0o600))
	_, err = prepareOne(t, d, claim)
	require.ErrorContains(t, err, "CDI spec")
	_, err = f.options.newDriver(driver, nil)
	require.ErrorContains(t, err, "directory of CDI specs")
}

func machineNamed(t *testing.T, name string) topology.Topology {
	t.Helper()
	m, err := machine.ByName(name)
	require.NoError(t, err)
	return m.Topology(node)
}

// claimOf returns a claim with these allocation results.
func claimOf(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	claim := allocatedClaim(name)
	claim.Status.Allocation.Devices.Results = results
	return claim
}

// parsed returns the parsed environment variables of a container that uses all devices of a claim, by device.
func (f *fixture) parsed(t *testing.T, driver string, claim types.UID) map[string]cdi.Parsed {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(f.options.CDIDir, driver+"-device_"+string(claim)+".json"))
	require.NoError(t, err)
	var spec cdispec.Spec
	require.NoError(t, json.Unmarshal(content, &spec))
	result := map[string]cdi.Parsed{}
	for _, device := range spec.Devices {
		for _, pair := range device.ContainerEdits.Env {
			variable, value, _ := strings.Cut(pair, "=")
			result[variable], err = cdi.Parse(value)
			require.NoError(t, err)
		}
	}
	return result
}

// TestPrepareMachines checks that containers get all attributes and capacities of the devices of each machine.
func TestPrepareMachines(t *testing.T) {
	for _, m := range machine.All() {
		f := newFixture(t, m.Topology(node))
		for i, name := range m.Drivers() {
			d, err := f.options.newDriver(name, func(error) {})
			require.NoError(t, err)
			claim := claimOf(fmt.Sprint(m.Name, i))
			devices := devicesOf(f.options.Topology, name)
			for device := range devices {
				claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
					resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: name, Pool: node, Device: device})
			}
			_, err = prepareOne(t, d, claim)
			require.NoError(t, err)
			told := f.parsed(t, name, claim.UID)
			require.Len(t, told, len(devices))
			for _, one := range told {
				require.Len(t, one.Attributes, len(devices[one.Device].Attributes))
				require.Len(t, one.Capacity, len(devices[one.Device].Capacity))
			}
		}
	}
}

func cpuShare(share types.UID, cpus string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{
		Request: "r", Driver: "dra.cpu", Pool: node, Device: "cpudevnuma000", ShareID: ptr.To(share),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"dra.cpu/cpu": resource.MustParse(cpus)},
	}
}

// TestShares checks that several claims can have different shares of a device, but not the same share.
func TestShares(t *testing.T) {
	f := newFixture(t, machineNamed(t, "cpu-numa"))
	d := f.driver(t)
	first := claimOf("a", cpuShare("share-1", "4"), cpuShare("share-2", "8"))
	for range 2 {
		devices, err := prepareOne(t, d, first)
		require.NoError(t, err)
		require.Len(t, devices, 2)
		require.Equal(t, types.UID("share-2"), *devices[1].ShareID)
		require.Len(t, f.parsed(t, "dra.cpu", first.UID), 2)
	}
	_, err := prepareOne(t, d, claimOf("b", cpuShare("share-3", "4")))
	require.NoError(t, err)
	_, err = prepareOne(t, d, claimOf("c", cpuShare("share-2", "8")))
	require.ErrorContains(t, err, "double allocation: device cpudevnuma000")
	require.NoError(t, unprepareOne(t, d, first))
	_, err = prepareOne(t, d, claimOf("c", cpuShare("share-2", "8")))
	require.NoError(t, err)
}
