// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import "github.com/celset/celset/internal/topology"

// that adds a judge of the devices of the request alone.
func (w want) that(alone func([]topology.Device) bool) want {
	w.alone = alone
	return w
}

func gpus(n int) want { return want{driver: "gpu.nvidia.com", count: n} }

func rdmas(n int) want { return want{driver: "dra.net", count: n, of: isRDMA} }

func neurons(n int) want { return want{driver: "neuron.aws.com", count: n} }

func cpus(n int64) want { return want{driver: "dra.cpu", count: 1, cpus: n} }

// asks are those of the pages about machines, in the order of the pages.
var asks = []ask{
	{
		page: "gpus.md", template: "gpus-and-ports", seed: 0, machine: "oci-gb200",
		what:  "2 GPUs and 4 ports of one NUMA node",
		also:  [][]int{{1, 2}, {2, 2}, {1, 4}},
		wants: []want{gpus(2), rdmas(4)}, holds: onOneNUMANodeOfTray,
		fragmented: []string{"gpu-0", "pci-0012-03-00-1"},
		today:      "tray-node-0-four-ports", pinnedTo: "bus IDs of two GPUs, `numaNode == 0`",
	},
	{
		page: "gpus.md", template: "gpus-and-nics-by-class", seed: 2, machine: "azure-gb300",
		what:  "2 GPUs and 2 NICs of one NUMA node",
		also:  [][]int{{1, 1}, {2, 1}},
		wants: []want{gpus(2), rdmas(2)}, holds: onOneNUMANodeOfTray,
		fragmented: []string{"gpu-1", "pci-0104-00-00-0"},
		today:      "tray-node-0-two-nics", pinnedTo: "bus IDs of two GPUs, `numaNode == 0`",
	},
	{
		page: "aws.md", template: "block-with-efas", seed: 3, machine: "aws-trn1",
		what:  "a 2x2 block and its 2 EFAs",
		also:  [][]int{{4, 4}},
		wants: []want{neurons(4).that(isSquareOfTorus), rdmas(2)}, holds: efasOfNeurons,
		fragmented: []string{"neuron-device-0", "neuron-device-6", "neuron-device-8", "neuron-device-14"},
		today:      "neurons-0-1-4-5", pinnedTo: "numbers of devices, addresses of EFAs",
	},
	{
		page: "aws.md", template: "half-with-efas", seed: 4, machine: "aws-trn1",
		what:  "8 devices of neighbouring columns or rows, and their 4 EFAs",
		wants: []want{neurons(8).that(isHalfOfTorus), rdmas(4)}, holds: efasOfNeurons,
		fragmented: []string{"neuron-device-0", "neuron-device-6", "neuron-device-8", "neuron-device-14"},
		today:      "neurons-0-to-7", pinnedTo: "numbers of devices, addresses of EFAs",
	},
	{
		page: "aws.md", template: "block-by-class", seed: 5, machine: "aws-trn1",
		what:  "a 2x2 block",
		also:  [][]int{{2}, {8}},
		wants: []want{neurons(4)}, holds: isBlockOfItsSize,
		today: "four-neurons-0-1-4-5", pinnedTo: "numbers of devices",
	},
	{
		page: "gpus.md", template: "gpus-and-rails", seed: 6, machine: "hgx-h100",
		what:  "4 GPUs and a rail at the root of each",
		also:  [][]int{{1, 1}, {2, 2}, {6, 6}, {8, 8}},
		wants: []want{gpus(4), rdmas(4)}, holds: oneInterfaceEach,
		fragmented: []string{"gpu-0", "gpu-1", "gpu-2", "pci-0000-c0-00-0", "pci-0000-ca-00-0"},
		today:      "hgx-numa-node-0", pinnedTo: "roots of four GPUs, `numaNode == 0`",
	},
	{
		page: "gpus.md", template: "rails-of-one-numa-node", seed: 8, machine: "hgx-h100", plain: true,
		what:  "3 rails of one NUMA node",
		also:  [][]int{{2}, {4}},
		wants: []want{rdmas(3)}, holds: interfacesOfOneNUMANode,
		today: "three-rails-of-numa-node-0", pinnedTo: "`numaNode == 0`",
	},
	{
		page: "gpus.md", template: "four-gpus", seed: 9, machine: "hgx-h100",
		what:  "`nvidia.com/gpu: 4`, of one CPU",
		also:  [][]int{{2}, {3}, {6}},
		wants: []want{gpus(4)}, holds: onOneSocketOfHGXIfThereIsRoom,
		fragmented: []string{"gpu-0", "gpu-5"},
		today:      "any-four-gpus", pinnedTo: "nothing: any four GPUs",
	},
	{
		page: "aws.md", template: "gpus-and-efas", seed: 10, machine: "aws-p4d",
		what:  "4 GPUs and 2 EFAs, all of two roots",
		also:  [][]int{{2, 1}, {6, 3}, {8, 4}},
		wants: []want{gpus(4), rdmas(2)}, holds: twoGPUsEach,
		drawn: true, fragmented: []string{"gpu-0", "gpu-2", "gpu-4"},
		today: "p4d-numa-node-0", pinnedTo: "roots of four GPUs, `numaNode == 0`",
	},
	{
		page: "aws.md", template: "four-gpus", seed: 12, machine: "aws-p4d",
		what:  "`nvidia.com/gpu: 4`, of two roots",
		also:  [][]int{{2}, {3}, {5}, {6}, {8}},
		wants: []want{gpus(4)}, holds: onFewRoots,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4"},
		today:      "any-four-gpus", pinnedTo: "nothing: any four GPUs",
	},
	{
		page: "gpus.md", template: "nics-of-one-numa-node", seed: 13, machine: "azure-mi300x", plain: true,
		what:  "3 NICs of one NUMA node",
		also:  [][]int{{2}, {4}},
		wants: []want{rdmas(3)}, holds: interfacesOfOneNUMANode,
		today: "three-nics-of-numa-node-0", pinnedTo: "`numaNode == 0`",
	},
	{
		page: "gpus.md", template: "half-on-each", seed: 14, machine: "azure-mi300x",
		what:  "4 GPUs and 4 NICs, two at each NUMA node",
		also:  [][]int{{2, 4}, {6, 4}, {8, 4}},
		wants: []want{rdmas(4), {driver: "gpu.amd.com", count: 4}}, holds: interfacesHalfOnEach,
		fragmented: []string{"pci-0101-00-00-0", "pci-0102-00-00-0", "pci-0103-00-00-0"},
		today:      "two-nics-of-each-numa-node", pinnedTo: "a request for `numaNode == 0`, one for `numaNode == 1`",
	},
	{
		page: "gpus.md", template: "four-amd-gpus", seed: 16, machine: "azure-mi300x",
		what:  "`amd.com/gpu: 4`, of one profile",
		wants: []want{{driver: "gpu.amd.com", count: 4}}, holds: ofOneProfile,
	},
	{
		page: "numa.md", template: "gpus-and-cpus", seed: 17, machine: "hgx-h100-cpu",
		what:  "2 GPUs and 16 CPUs next to them",
		also:  [][]int{{1, 1}, {4, 1}},
		wants: []want{gpus(2), cpus(16)}, holds: cpusAtGPUs,
		fragmented: []string{"gpu-0", "gpu-1", "gpu-2", "cpudevnuma001"},
		today:      "two-gpus-and-cpus-of-numa-node-0", pinnedTo: "roots of two GPUs, `numaNode == 0`",
	},
	{
		page: "numa.md", template: "gpus-rails-and-cpus", seed: 18, machine: "hgx-h100-cpu",
		what:  "2 GPUs, their rails, and 16 CPUs next to them",
		also:  [][]int{{1, 1, 1}, {3, 3, 1}},
		wants: []want{gpus(2), rdmas(2), cpus(16)}, holds: cpusAtGPUsAndRails,
		today: "two-gpus-rails-and-cpus-of-numa-node-0", pinnedTo: "roots of two GPUs and rails, `numaNode == 0`",
	},
	{
		page: "numa.md", template: "gpu-and-whole-cores", seed: 19, on: gpusAndCores, title: "hgx-h100, some of cpu-each",
		what:  "a GPU and two whole cores next to it",
		also:  [][]int{{1, 2}},
		wants: []want{gpus(1), {driver: "dra.cpu", count: 4, alone: areWholeCores}}, holds: allCPUsAtGPUs,
		fragmented: []string{"cpudev000", "cpudev003", "cpudev004", "gpu-4", "gpu-5", "gpu-6", "gpu-7"},
		today:      "gpu-and-first-cores", pinnedTo: "the root of a GPU, numbers of CPUs",
	},
	{
		page: "gpus.md", template: "gaudis-of-one-cpu", seed: 20, machine: "intel-gaudi2",
		what:  "4 Gaudi of one CPU",
		also:  [][]int{{2}, {3}},
		wants: []want{{driver: "gaudi.intel.com", count: 4}}, holds: ofOneCPUOfGaudi,
		fragmented: []string{"0000-19-00-0-0x1020", "0000-e5-00-0-0x1020"},
		today:      "four-gaudis-of-cpu-0", pinnedTo: "roots of four",
	},
	{
		page: "gpus.md", template: "gpus-of-one-root", seed: 21, machine: "intel-gpu", plain: true,
		what:  "2 GPUs of one root",
		wants: []want{{driver: "gpu.intel.com", count: 2}}, holds: ofOneRoot,
		today: "two-gpus-by-address", pinnedTo: "addresses",
	},
	{
		page: "gpus.md", template: "four-gaudis", seed: 22, machine: "intel-gaudi2",
		what:  "`habana.ai/gaudi: 4`, of one CPU",
		also:  [][]int{{2}, {5}, {8}},
		wants: []want{{driver: "gaudi.intel.com", count: 4}}, holds: ofOneCPUOfGaudiIfThereIsRoom,
		today: "any-four-gaudis", pinnedTo: "nothing: any four",
	},
	{
		page: "numa.md", template: "one-numa-node", seed: 23, on: twoSockets, title: "two sockets",
		what:  "2 GPUs and a NIC of one NUMA node, a number and a list",
		also:  [][]int{{1, 1}, {2, 2}},
		wants: []want{{driver: "gpu.example.com", count: 2}, {driver: "nic.example.com", count: 1}}, holds: haveNUMANodeInCommon,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4", "gpu-6"},
		today:      "gpus-and-nic-of-numa-node-0", pinnedTo: "`numaNode == 0`",
	},
	{
		page: "numa.md", template: "one-numa-node-in-common", seed: 24, on: twoSockets, title: "two sockets", plain: true,
		what:  "the same with matchAttribute",
		wants: []want{{driver: "gpu.example.com", count: 2}, {driver: "nic.example.com", count: 1}}, holds: haveNUMANodeInCommon,
	},
}
