// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

// The hybrid cube mesh is that of a DGX-1 with eight V100: between some GPUs are two links of
// NVLink, between some one, and the others see each other through the CPUs.

// doublePeers names the GPUs to which there are two links.
const doublePeers = "doublePeers"

// links has the number of NVLink's links between each two GPUs, as "nvidia-smi topo -m" shows it.
var links = [8][8]int{
	{0, 1, 1, 2, 2, 0, 0, 0},
	{1, 0, 2, 1, 0, 2, 0, 0},
	{1, 2, 0, 2, 0, 0, 1, 0},
	{2, 1, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 1, 1, 2},
	{0, 2, 0, 0, 1, 0, 2, 1},
	{0, 0, 1, 0, 1, 2, 0, 2},
	{0, 0, 0, 1, 2, 1, 2, 0},
}

// cubeMesh has an attribute besides those of the generated one.
func cubeMesh(family topology.Family) topology.Topology {
	t := made(topology.NewHybridCubeMesh(family, topology.PeersAsString))
	for i := range t.Devices {
		var double []string
		for j, n := range links[i] {
			if n == 2 {
				double = append(double, t.Devices[j].Name)
			}
		}
		t.Devices[i].Attributes[doublePeers] = resourceapi.DeviceAttribute{StringValue: new(strings.Join(double, ","))}
	}
	return t
}

// cubeMeshScores are those of NVIDIA's go-gpuallocator: 100 for each link of NVLink, and besides 50
// for two GPUs below one PCIe switch, 30 below one CPU and 10 for those of two CPUs.
func cubeMeshScores() [][]int {
	scores := make([][]int, len(links))
	for i := range links {
		scores[i] = make([]int, len(links))
		for j, n := range links[i] {
			pcie := 10
			switch {
			case i == j:
				pcie = 0
			case i/2 == j/2:
				pcie = 50
			case i/4 == j/4:
				pcie = 30
			}
			scores[i][j] = 100*n + pcie
		}
	}
	return scores
}

// score is the sum over each two devices of a set.
func (m *Machine) score(set Set) int {
	if m.scores == nil {
		return 0
	}
	total := 0
	for i := range set.members() {
		for j := range set.members() {
			if i < j {
				total += m.scores[i][j]
			}
		}
	}
	return total
}
