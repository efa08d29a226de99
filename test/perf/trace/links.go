// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math/bits"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
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

// Attributes that tell which GPUs are below one PCIe switch, and at one CPU.
const (
	pcieSwitch = "pcieSwitch"
	cpu        = "cpu"
)

const gpusPerSwitch, gpusPerCPU = 2, 4

// cubeMesh has attributes besides those of the generated one.
func cubeMesh(family topology.Family) topology.Topology {
	t := made(topology.NewHybridCubeMesh(family, topology.PeersAsString))
	for i := range t.Devices {
		var double []string
		for j, n := range links[i] {
			if n == 2 {
				double = append(double, t.Devices[j].Name)
			}
		}
		attributes := t.Devices[i].Attributes
		attributes[doublePeers] = resourceapi.DeviceAttribute{StringValue: new(strings.Join(double, ","))}
		attributes[pcieSwitch] = resourceapi.DeviceAttribute{IntValue: new(int64(i / gpusPerSwitch))}
		attributes[cpu] = resourceapi.DeviceAttribute{IntValue: new(int64(i / gpusPerCPU))}
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
			case i/gpusPerSwitch == j/gpusPerSwitch:
				pcie = 50
			case i/gpusPerCPU == j/gpusPerCPU:
				pcie = 30
			}
			scores[i][j] = 100*n + pcie
		}
	}
	return scores
}

// neighbourScores are 100 for each two devices that are linked.
func neighbourScores(t topology.Topology) [][]int {
	scores := make([][]int, len(t.Devices))
	for i, d := range t.Devices {
		scores[i] = make([]int, len(t.Devices))
		for j, o := range t.Devices {
			if t.Adjacent(d.Name, o.Name) {
				scores[i][j] = 100
			}
		}
	}
	return scores
}

// score is the sum over each two devices of a set.
func (m *Machine) score(set Set) int {
	if m.sums == nil {
		return 0
	}
	return int(m.sums[set])
}

// sum computes the scores of all sets.
func (m *Machine) sum() {
	if m.scores == nil {
		return
	}
	m.sums = make([]int32, m.all()+1)
	for set := Set(1); set <= m.all(); set++ {
		last := bits.Len32(uint32(set)) - 1
		rest := set &^ (1 << last)
		m.sums[set] = m.sums[rest]
		for i := range rest.members() {
			m.sums[set] += int32(m.scores[i][last])
		}
	}
}

// peerLinks is what the scores add up to, less 10 for each two GPUs, divided by 10: each two are
// counted twice, and each GPU with itself.
func peerLinks() string {
	id, peers, double := attribute("o", "id"), attribute("d", "peers"), attribute("d", doublePeers)
	same := func(name string) string {
		return fmt.Sprintf("devices.filter(o, %s == %s).size()", attribute("o", name), attribute("d", name))
	}
	return fmt.Sprintf("devices.map(d, 5 * devices.filter(o, %s in %s.split(',')).size() + 5 * devices.filter(o, %s in %s.split(',')).size() + %s + %s).sum()",
		id, peers, id, double, same(cpu), same(pcieSwitch))
}

// neighbourLinks is how many links there are among the devices of a mesh.
func neighbourLinks() string {
	row, col, otherRow, otherCol := attribute("d", "row"), attribute("d", "col"), attribute("o", "row"), attribute("o", "col")
	return fmt.Sprintf("devices.map(d, devices.filter(o, %s == %s && %s == %s + 1 || %s == %s && %s == %s + 1).size()).sum()",
		row, otherRow, col, otherCol, col, otherCol, row, otherRow)
}

// strongLinks prefers sets with the most links.
func (m *Machine) strongLinks() v1alpha1.CELDevicePreference {
	return v1alpha1.CELDevicePreference{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind},
		Name:     "links", Expression: m.links,
	}
}
