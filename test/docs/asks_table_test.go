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

// asks are those of the pages about machines, in the order of the pages.
var asks = []ask{
	{
		page: "gb200.md", template: "gpus-and-ports", machine: "oci-gb200",
		what:  "2 GPUs and 4 ports of one NUMA node",
		wants: []want{gpus(2), rdmas(4)}, holds: onOneNUMANodeOfTray,
		fragmented: []string{"gpu-0", "pci-0012-03-00-1"},
		today:      "tray-node-0-four-ports", pinnedBy: "bus IDs of two GPUs, `numaNode == 0`",
	},
	{
		page: "gb200.md", template: "gpus-and-ports-by-class", machine: "oci-gb200",
		what:  "the same, by class",
		wants: []want{gpus(2), rdmas(4)}, holds: onOneNUMANodeOfTray,
	},
	{
		page: "gb200.md", template: "gpus-and-nics-by-class", machine: "azure-gb300",
		what:  "2 GPUs and 2 NICs of one NUMA node",
		wants: []want{gpus(2), rdmas(2)}, holds: onOneNUMANodeOfTray,
		fragmented: []string{"gpu-1", "pci-0104-00-00-0"},
		today:      "tray-node-0-two-nics", pinnedBy: "bus IDs of two GPUs, `numaNode == 0`",
	},
	{
		page: "aws-trn1.md", template: "block-with-efas", machine: "aws-trn1",
		what:  "a 2x2 block and its 2 EFAs",
		wants: []want{neurons(4).that(isSquareOfTorus), rdmas(2)}, holds: efasOfNeurons,
		fragmented: []string{"neuron-device-0", "neuron-device-6", "neuron-device-8", "neuron-device-14"},
		today:      "neurons-0-1-4-5", pinnedBy: "numbers of devices, addresses of EFAs",
	},
	{
		page: "aws-trn1.md", template: "half-with-efas", machine: "aws-trn1",
		what:  "8 devices of neighbouring columns or rows, and their 4 EFAs",
		wants: []want{neurons(8).that(isHalfOfTorus), rdmas(4)}, holds: efasOfNeurons,
		fragmented: []string{"neuron-device-0", "neuron-device-6", "neuron-device-8", "neuron-device-14"},
		today:      "neurons-0-to-7", pinnedBy: "numbers of devices, addresses of EFAs",
	},
	{
		page: "aws-trn1.md", template: "block-by-class", machine: "aws-trn1",
		what:  "a 2x2 block",
		wants: []want{neurons(4)}, holds: isSquareOfTorus,
		today: "four-neurons-0-1-4-5", pinnedBy: "numbers of devices",
	},
	{
		page: "hgx-h100.md", template: "gpus-and-rails", machine: "hgx-h100",
		what:  "4 GPUs and a rail at the root of each",
		wants: []want{gpus(4), rdmas(4)}, holds: oneInterfaceEach,
		fragmented: []string{"gpu-0", "gpu-1", "gpu-2", "pci-0000-c0-00-0", "pci-0000-ca-00-0"},
		today:      "hgx-numa-node-0", pinnedBy: "roots of four GPUs, `numaNode == 0`",
	},
	{
		page: "hgx-h100.md", template: "gpus-and-rails-by-class", machine: "hgx-h100",
		what:  "the same, by class",
		wants: []want{gpus(4), rdmas(4)}, holds: oneInterfaceEach,
	},
	{
		page: "hgx-h100.md", template: "rails-of-one-numa-node", machine: "hgx-h100", plain: true,
		what:  "3 rails of one NUMA node",
		wants: []want{rdmas(3)}, holds: interfacesOfOneNUMANode,
		today: "three-rails-of-numa-node-0", pinnedBy: "`numaNode == 0`",
	},
	{
		page: "hgx-h100.md", template: "four-gpus", machine: "hgx-h100",
		what:  "`nvidia.com/gpu: 4`, of one CPU",
		wants: []want{gpus(4)}, holds: onOneSocketOfHGX,
		fragmented: []string{"gpu-0", "gpu-5"},
		today:      "any-four-gpus", pinnedBy: "nothing: any four GPUs",
	},
	{
		page: "aws-p4d.md", template: "gpus-and-efas", machine: "aws-p4d",
		what:  "4 GPUs and 2 EFAs, all of two roots",
		wants: []want{gpus(4), rdmas(2)}, holds: twoGPUsEach,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4"},
		today:      "p4d-numa-node-0", pinnedBy: "roots of four GPUs, `numaNode == 0`",
	},
	{
		page: "aws-p4d.md", template: "gpus-and-efas-by-class", machine: "aws-p4d",
		what:  "the same, by class",
		wants: []want{gpus(4), rdmas(2)}, holds: twoGPUsEach,
	},
	{
		page: "aws-p4d.md", template: "four-gpus", machine: "aws-p4d",
		what:  "`nvidia.com/gpu: 4`, of two roots",
		wants: []want{gpus(4)}, holds: onTwoRoots,
		fragmented: []string{"gpu-0", "gpu-2", "gpu-4"},
		today:      "any-four-gpus", pinnedBy: "nothing: any four GPUs",
	},
}
