// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/topology/machine"
)

// pictureOf is one of a node of a machine, where a claim has some devices, "driver/name".
func pictureOf(t *testing.T, name string, devices ...string) *draw.Picture {
	t.Helper()
	m, err := machine.ByName(name)
	require.NoError(t, err)
	slices, err := m.ResourceSlices(node)
	require.NoError(t, err)
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
		Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}},
	}
	for _, device := range devices {
		driver, name, _ := strings.Cut(device, "/")
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: node, Device: name})
	}
	state := clusterstate.New(&clusterstate.Objects{Slices: slices, Claims: []*resourceapi.ResourceClaim{claim}})
	picture, err := draw.New(t.Context(), state, state.Node(node), draw.Options{Claim: claim})
	require.NoError(t, err)
	return picture
}

func textOf(t *testing.T, picture *draw.Picture) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, picture.Text(&out, false))
	return out.String()
}

// TestMachinesCanBeDrawn: each device of each machine is in a picture, in an SVG in its own
// place.
func TestMachinesCanBeDrawn(t *testing.T) {
	for _, m := range machine.All() {
		t.Run(m.Name, func(t *testing.T) {
			picture := pictureOf(t, m.Name)
			count := 0
			text := textOf(t, picture)
			for _, panel := range picture.Panels {
				for _, device := range panel.Devices {
					require.Contains(t, text, device.Name)
					count++
				}
			}
			require.Len(t, m.Topology(node).Devices, count)
			var svg bytes.Buffer
			require.NoError(t, picture.SVG(&svg))
			requireTidy(t, svg.Bytes(), count)
		})
	}
}

// TestOneBoardForAllDrivers: a node with GPUs and rails is one picture.
func TestOneBoardForAllDrivers(t *testing.T) {
	picture := pictureOf(t, "hgx-h100", "gpu.nvidia.com/gpu-5", "dra.net/pci-0000-d4-00-0")
	require.Equal(t, `node node-1

2 devices of compute-domain.nvidia.com

[channel-0 .]   [daemon-0  .]

. free (2)

21 devices of dra.net and gpu.nvidia.com

+- NUMA node 0 --------------------------------------------------------------------------+
| pci0000:a0            pci0000:aa            pci0000:b4            pci0000:be           |
| [gpu-0            .]  [gpu-1            .]  [gpu-2            .]  [gpu-3            .] |
| [pci-0000-a2-00-0 .]  [pci-0000-ac-00-0 .]  [pci-0000-b6-00-0 .]  [pci-0000-c0-00-0 .] |
+----------------------------------------------------------------------------------------+
+- NUMA node 1 --------------------------------------------------------------------------+
| pci0000:c8            pci0000:d2            pci0000:dc            pci0000:e6           |
| [gpu-4            .]  [gpu-5            *]  [gpu-6            .]  [gpu-7            .] |
| [pci-0000-ca-00-0 .]  [pci-0000-d4-00-0 *]  [pci-0000-de-00-0 .]  [pci-0000-e8-00-0 .] |
+----------------------------------------------------------------------------------------+
+ 5 others of dra.net: br-int, genev-sys-6081, ovn-k8s-mp0, ovs-system, pci-0000-00-03-0

. free (19)   * chosen (2)
`, textOf(t, picture))
	arrangements := map[string]draw.Arrangement{}
	for _, panel := range picture.Panels {
		arrangements[panel.Driver] = panel.Arrangement
		for _, device := range panel.Devices {
			if device.Name == "gpu-5" {
				require.Equal(t, int64(1), *device.NUMANode, "that of the rail below its root")
				require.Equal(t, []string{"pci0000:d2"}, device.PCIeRoots)
			}
		}
	}
	require.Equal(t, map[string]draw.Arrangement{
		"gpu.nvidia.com": draw.ByPlace, "dra.net": draw.ByPlace, "compute-domain.nvidia.com": draw.ByOrder,
	}, arrangements)
}

// TestCoordinatesOfNeuron: the block that a claim has is seen as one, and which EFAs go with
// it.
func TestCoordinatesOfNeuron(t *testing.T) {
	picture := pictureOf(t, "aws-trn1", "neuron.aws.com/neuron-device-4", "neuron.aws.com/neuron-device-5", "dra.net/pci-0000-30-1d-0")
	text := textOf(t, picture)
	require.Contains(t, text, `
[neuron-device-0  .]   [neuron-device-4  *]   [neuron-device-8  .]   [neuron-device-12 .]
[neuron-device-1  .]   [neuron-device-5  *]   [neuron-device-9  .]   [neuron-device-13 .]
[neuron-device-2  .]   [neuron-device-6  .]   [neuron-device-10 .]   [neuron-device-14 .]
[neuron-device-3  .]   [neuron-device-7  .]   [neuron-device-11 .]   [neuron-device-15 .]
`)
	require.Contains(t, text, `
same resource.aws.com/devicegroup1_id
neuron-device-0  .   neuron-device-1  .   pci-0000-10-1d-0 .
neuron-device-2  .   neuron-device-3  .   pci-0000-20-1d-0 .
neuron-device-4  *   neuron-device-5  *   pci-0000-30-1d-0 *
`)
	for _, panel := range picture.Panels {
		require.Equal(t, panel.Driver == "neuron.aws.com", panel.Arrangement == draw.ByCoordinates)
	}
}

// TestSameNamesOfTwoDrivers: on a board, names that two drivers have come with their driver.
func TestSameNamesOfTwoDrivers(t *testing.T) {
	slice := func(driver string) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{Name: "a", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To("pci0000:10")},
			}}},
		}}
	}
	state := clusterstate.New(&clusterstate.Objects{Slices: []*resourceapi.ResourceSlice{slice("x.test"), slice("y.test")}})
	picture, err := draw.New(t.Context(), state, state.Node(node), draw.Options{})
	require.NoError(t, err)
	require.Equal(t, `node node-1

2 devices of x.test and y.test

pci0000:10
[x.test/a .]
[y.test/a .]

. free (2)
`, textOf(t, picture))
}
