// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
)

// bestEffort asks the best-effort policy of NVIDIA's go-gpuallocator, which its device plugin has the
// kubelet ask: the free GPUs of the node are divided into sets of the wanted size such that the scores
// of the links in all of them add up to the most, as if everybody wanted as many; of these sets the
// best is taken. What does not fill a set is left over, but its links count in the sum. For one GPU that
// is the first. It knows of no constraint.
func (m *Machine) bestEffort(_ int, free Set, size int) (choice, error) {
	available := make([]*gpuallocator.Device, 0, free.len())
	for i := range free.members() {
		available = append(available, m.gpus[i])
	}
	var chosen choice
	for _, gpu := range gpuallocator.NewBestEffortPolicy().Allocate(available, nil, size) {
		if gpu == nil {
			return choice{}, fmt.Errorf("of %b the policy chose what is left over from sets of %d", free, size)
		}
		chosen.set |= 1 << gpu.Index
	}
	return chosen, nil
}

// linkTypes are the kinds of links by what the policy counts for them. Their names are not exported.
var linkTypes = map[int]gpuallocator.P2PLink{
	10:  {Type: 1}, // of two CPUs
	30:  {Type: 3}, // at one CPU
	50:  {Type: 5}, // below one PCIe switch
	100: {Type: 7}, // a link of NVLink
	200: {Type: 8}, // two links of NVLink
}

// connected are devices as the policy of NVIDIA knows them. The scores of each two are what NVLink
// counts for, and less than 100 for what there is besides.
func connected(scores [][]int) ([]*gpuallocator.Device, error) {
	gpus := make([]*gpuallocator.Device, len(scores))
	for i := range scores {
		gpus[i] = &gpuallocator.Device{Index: i, Links: map[int][]gpuallocator.P2PLink{}}
	}
	for i := range scores {
		for j, score := range scores[i] {
			for _, worth := range []int{score % 100, score - score%100} {
				if worth == 0 {
					continue
				}
				link, known := linkTypes[worth]
				if !known {
					return nil, fmt.Errorf("no link counts %d, as between %d and %d", worth, i, j)
				}
				link.GPU = gpus[j]
				gpus[i].Links[j] = append(gpus[i].Links[j], link)
			}
		}
	}
	return gpus, nil
}

// ifItWillDo passes over what does not satisfy the constraint for the size.
func (m *Machine) ifItWillDo(c chooser) chooser {
	return func(node int, free Set, size int) (choice, error) {
		chosen, err := c(node, free, size)
		if chosen.set != 0 && !m.willDo(chosen.set) {
			return choice{}, err
		}
		return chosen, err
	}
}
