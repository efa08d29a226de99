// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

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
}
