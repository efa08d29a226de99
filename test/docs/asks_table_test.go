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
		page: "gb200.md", template: "gpus-and-ports", machine: "oci-gb200",
		what:  "2 GPUs and 4 ports of one NUMA node",
		also:  [][]int{{1, 2}, {2, 2}, {1, 4}},
		wants: []want{gpus(2), rdmas(4)}, holds: onOneNUMANodeOfTray,
		fragmented: []string{"gpu-0", "pci-0012-03-00-1"},
		today:      "tray-node-0-four-ports", pinnedTo: "bus IDs of two GPUs, `numaNode == 0`",
	},
	{
		page: "gb200.md", template: "gpus-and-ports-by-class", machine: "oci-gb200",
		what:  "the same, by class",
		wants: []want{gpus(2), rdmas(4)}, holds: onOneNUMANodeOfTray,
	},
	{
		page: "gb200.md", template: "gpus-and-nics-by-class", machine: "azure-gb300",
		what:  "2 GPUs and 2 NICs of one NUMA node",
		also:  [][]int{{1, 1}, {2, 1}},
		wants: []want{gpus(2), rdmas(2)}, holds: onOneNUMANodeOfTray,
		fragmented: []string{"gpu-1", "pci-0104-00-00-0"},
		today:      "tray-node-0-two-nics", pinnedTo: "bus IDs of two GPUs, `numaNode == 0`",
	},
	{
		page: "aws-trn1.md", template: "block-with-efas", machine: "aws-trn1",
		what:  "a 2x2 block and its 2 EFAs",
		also:  [][]int{{4, 4}},
		wants: []want{neurons(4).that(isSquareOfTorus), rdmas(2)}, holds: efasOfNeurons,
		fragmented: []string{"neuron-device-0", "neuron-device-6", "neuron-device-8", "neuron-device-14"},
		today:      "neurons-0-1-4-5", pinnedTo: "numbers of devices, addresses of EFAs",
	},
	{
		page: "aws-trn1.md", template: "half-with-efas", machine: "aws-trn1",
		what:  "8 devices of neighbouring columns or rows, and their 4 EFAs",
		wants: []want{neurons(8).that(isHalfOfTorus), rdmas(4)}, holds: efasOfNeurons,
		fragmented: []string{"neuron-device-0", "neuron-device-6", "neuron-device-8", "neuron-device-14"},
		today:      "neurons-0-to-7", pinnedTo: "numbers of devices, addresses of EFAs",
	},
	{
		page: "aws-trn1.md", template: "block-by-class", machine: "aws-trn1",
		what:  "a 2x2 block",
		also:  [][]int{{2}, {8}},
		wants: []want{neurons(4)}, holds: isBlockOfItsSize,
		today: "four-neurons-0-1-4-5", pinnedTo: "numbers of devices",
	},
	{
		page: "hgx-h100.md", template: "gpus-and-rails", machine: "hgx-h100",
		what:  "4 GPUs and a rail at the root of each",
		also:  [][]int{{1, 1}, {2, 2}, {6, 6}, {8, 8}},
		wants: []want{gpus(4), rdmas(4)}, holds: oneInterfaceEach,
		fragmented: []string{"gpu-0", "gpu-1", "gpu-2", "pci-0000-c0-00-0", "pci-0000-ca-00-0"},
		today:      "hgx-numa-node-0", pinnedTo: "roots of four GPUs, `numaNode == 0`",
	},
	{
		page: "hgx-h100.md", template: "gpus-and-rails-by-class", machine: "hgx-h100",
		what:  "the same, by class",
		wants: []want{gpus(4), rdmas(4)}, holds: oneInterfaceEach,
	},
	{
		page: "hgx-h100.md", template: "rails-of-one-numa-node", machine: "hgx-h100", plain: true,
		what:  "3 rails of one NUMA node",
		also:  [][]int{{2}, {4}},
		wants: []want{rdmas(3)}, holds: interfacesOfOneNUMANode,
		today: "three-rails-of-numa-node-0", pinnedTo: "`numaNode == 0`",
	},
	{
		page: "hgx-h100.md", template: "four-gpus", machine: "hgx-h100",
		what:  "`nvidia.com/gpu: 4`, of one CPU",
		also:  [][]int{{2}, {3}, {6}},
		wants: []want{gpus(4)}, holds: onOneSocketOfHGXIfThereIsRoom,
		fragmented: []string{"gpu-0", "gpu-5"},
		today:      "any-four-gpus", pinnedTo: "nothing: any four GPUs",
	},
	{
		page: "aws-p4d.md", template: "gpus-and-efas", machine: "aws-p4d",
		what:  "4 GPUs and 2 EFAs, all of two roots",
		also:  [][]int{{2, 1}, {6, 3}, {8, 4}},
		wants: []want{gpus(4), rdmas(2)}, holds: twoGPUsEach,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4"},
		today:      "p4d-numa-node-0", pinnedTo: "roots of four GPUs, `numaNode == 0`",
	},
	{
		page: "aws-p4d.md", template: "gpus-and-efas-by-class", machine: "aws-p4d",
		what:  "the same, by class",
		wants: []want{gpus(4), rdmas(2)}, holds: twoGPUsEach,
	},
	{
		page: "aws-p4d.md", template: "four-gpus", machine: "aws-p4d",
		what:  "`nvidia.com/gpu: 4`, of two roots",
		also:  [][]int{{2}, {3}, {5}, {6}, {8}},
		wants: []want{gpus(4)}, holds: onFewRoots,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4"},
		today:      "any-four-gpus", pinnedTo: "nothing: any four GPUs",
	},
	{
		page: "mi300x.md", template: "nics-of-one-numa-node", machine: "azure-mi300x", plain: true,
		what:  "3 NICs of one NUMA node",
		also:  [][]int{{2}, {4}},
		wants: []want{rdmas(3)}, holds: interfacesOfOneNUMANode,
		today: "three-nics-of-numa-node-0", pinnedTo: "`numaNode == 0`",
	},
	{
		page: "mi300x.md", template: "half-on-each", machine: "azure-mi300x",
		what:  "4 GPUs and 4 NICs, two at each NUMA node",
		wants: []want{rdmas(4), {driver: "gpu.amd.com", count: 4}}, holds: interfacesHalfOnEach,
		fragmented: []string{"pci-0101-00-00-0", "pci-0102-00-00-0", "pci-0103-00-00-0"},
		today:      "two-nics-of-each-numa-node", pinnedTo: "a request for `numaNode == 0`, one for `numaNode == 1`",
	},
	{
		page: "mi300x.md", template: "half-on-each-by-class", machine: "azure-mi300x",
		what:  "the NICs alone, by class",
		also:  [][]int{{2}, {6}, {8}},
		wants: []want{rdmas(4)}, holds: interfacesHalfOnEach,
	},
	{
		page: "mi300x.md", template: "four-gpus", machine: "azure-mi300x",
		what:  "`amd.com/gpu: 4`, of one profile",
		wants: []want{{driver: "gpu.amd.com", count: 4}}, holds: ofOneProfile,
	},
	{
		page: "cpus.md", template: "gpus-and-cpus", machine: "hgx-h100-cpu",
		what:  "2 GPUs and 16 CPUs next to them",
		also:  [][]int{{1, 1}, {4, 1}},
		wants: []want{gpus(2), cpus(16)}, holds: cpusAtGPUs,
		fragmented: []string{"gpu-0", "gpu-1", "gpu-2", "cpudevnuma001"},
		today:      "two-gpus-and-cpus-of-numa-node-0", pinnedTo: "roots of two GPUs, `numaNode == 0`",
	},
	{
		page: "cpus.md", template: "gpus-rails-and-cpus", machine: "hgx-h100-cpu",
		what:  "2 GPUs, their rails, and 16 CPUs next to them",
		also:  [][]int{{1, 1, 1}, {3, 3, 1}},
		wants: []want{gpus(2), rdmas(2), cpus(16)}, holds: cpusAtGPUsAndRails,
		today: "two-gpus-rails-and-cpus-of-numa-node-0", pinnedTo: "roots of two GPUs and rails, `numaNode == 0`",
	},
	{
		page: "cpus.md", template: "gpu-and-whole-cores", on: gpusAndCores, title: "hgx-h100, some of cpu-each",
		what:  "a GPU and two whole cores next to it",
		also:  [][]int{{1, 2}},
		wants: []want{gpus(1), {driver: "dra.cpu", count: 4, alone: areWholeCores}}, holds: allCPUsAtGPUs,
		fragmented: []string{"cpudev000", "cpudev003", "cpudev004", "gpu-4", "gpu-5", "gpu-6", "gpu-7"},
		today:      "gpu-and-first-cores", pinnedTo: "the root of a GPU, numbers of CPUs",
	},
	{
		page: "gaudi.md", template: "gaudis-of-one-cpu", machine: "intel-gaudi2",
		what:  "4 Gaudi of one CPU",
		also:  [][]int{{2}, {3}},
		wants: []want{{driver: "gaudi.intel.com", count: 4}}, holds: ofOneCPUOfGaudi,
		fragmented: []string{"0000-19-00-0-0x1020", "0000-e5-00-0-0x1020"},
		today:      "four-gaudis-of-cpu-0", pinnedTo: "roots of four",
	},
	{
		page: "gaudi.md", template: "gpus-of-one-root", machine: "intel-gpu", plain: true,
		what:  "2 GPUs of one root",
		wants: []want{{driver: "gpu.intel.com", count: 2}}, holds: ofOneRoot,
		today: "two-gpus-by-address", pinnedTo: "addresses",
	},
	{
		page: "gaudi.md", template: "four-gaudis", machine: "intel-gaudi2",
		what:  "`habana.ai/gaudi: 4`, of one CPU",
		also:  [][]int{{2}, {5}, {8}},
		wants: []want{{driver: "gaudi.intel.com", count: 4}}, holds: ofOneCPUOfGaudiIfThereIsRoom,
		today: "any-four-gaudis", pinnedTo: "nothing: any four",
	},
	{
		page: "numa.md", template: "one-numa-node", on: twoSockets, title: "two sockets",
		what:  "2 GPUs and a NIC of one NUMA node, a number and a list",
		also:  [][]int{{1, 1}, {2, 2}},
		wants: []want{{driver: "gpu.example.com", count: 2}, {driver: "nic.example.com", count: 1}}, holds: haveNUMANodeInCommon,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4", "gpu-6"},
		today:      "gpus-and-nic-of-numa-node-0", pinnedTo: "`numaNode == 0`",
	},
	{
		page: "numa.md", template: "one-numa-node-in-common", on: twoSockets, title: "two sockets", plain: true,
		what:  "the same with matchAttribute",
		wants: []want{{driver: "gpu.example.com", count: 2}, {driver: "nic.example.com", count: 1}}, holds: haveNUMANodeInCommon,
	},
	{
		page: "numa.md", template: "one-numa-node-by-class", on: twoSockets, title: "two sockets",
		what:  "the same, by class",
		wants: []want{{driver: "gpu.example.com", count: 2}, {driver: "nic.example.com", count: 1}}, holds: haveNUMANodeInCommon,
	},
}
