// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"

	"github.com/celset/celset/internal/testing/shape"
)

// bestEffort asks the best-effort policy of NVIDIA's go-gpuallocator, which its device plugin has the
// kubelet ask: the free GPUs of the node are divided into sets of the wanted size such that the scores
// of the links in all of them add up to the most, as if everybody wanted as many; of these sets the
// best is taken. What does not fill a set is left over, but its links count in the sum. For one GPU that
// is the first. It knows of no constraint: what does not satisfy it is passed over.
func (m *Machine) bestEffort(free shape.Set, size int) (choice, error) {
	available := make([]*gpuallocator.Device, 0, free.Len())
	for i := range free.All() {
		available = append(available, m.gpus[i])
	}
	var chosen choice
	for _, gpu := range gpuallocator.NewBestEffortPolicy().Allocate(available, nil, size) {
		if gpu == nil {
			return choice{}, fmt.Errorf("of %b the policy chose what is left over from sets of %d", free, size)
		}
		chosen.set |= 1 << gpu.Index
	}
	if !slices.Contains(m.sets[size], chosen.set) {
		return choice{}, nil
	}
	return chosen, nil
}

// The kinds of links, for which the policy counts 10, 30, 50, 100 and 200. Their names are not exported.
var (
	ofTwoCPUs   = gpuallocator.P2PLink{Type: 1}
	atOneCPU    = gpuallocator.P2PLink{Type: 3}
	atOneSwitch = gpuallocator.P2PLink{Type: 5}
	nvLink      = [...]gpuallocator.P2PLink{1: {Type: 7}, 2: {Type: 8}}
)

const gpusPerSwitch, gpusPerCPU = 2, 4

// nvLinks has the number of NVLink's links between each two GPUs of a DGX-1 with eight V100, as
// "nvidia-smi topo -m" shows it.
var nvLinks = [8][8]int{
	{0, 1, 1, 2, 2, 0, 0, 0},
	{1, 0, 2, 1, 0, 2, 0, 0},
	{1, 2, 0, 2, 0, 0, 1, 0},
	{2, 1, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 1, 1, 2},
	{0, 2, 0, 0, 1, 0, 2, 1},
	{0, 0, 1, 0, 1, 2, 0, 2},
	{0, 0, 0, 1, 2, 1, 2, 0},
}

// cubeMeshGPUs are those of the hybrid cube mesh as NVIDIA's policies know them.
func cubeMeshGPUs() []*gpuallocator.Device {
	gpus := make([]*gpuallocator.Device, len(nvLinks))
	for i := range gpus {
		gpus[i] = &gpuallocator.Device{Index: i, Links: map[int][]gpuallocator.P2PLink{}}
	}
	for i, gpu := range gpus {
		for j, n := range nvLinks[i] {
			if i == j {
				continue
			}
			link := ofTwoCPUs
			switch {
			case i/gpusPerSwitch == j/gpusPerSwitch:
				link = atOneSwitch
			case i/gpusPerCPU == j/gpusPerCPU:
				link = atOneCPU
			}
			link.GPU = gpus[j]
			gpu.Links[j] = append(gpu.Links[j], link)
			if n > 0 {
				link.Type = nvLink[n].Type
				gpu.Links[j] = append(gpu.Links[j], link)
			}
		}
	}
	return gpus
}
