// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import "slices"

// Near is the story of four devices of a ring of eight with as many links among them as there can
// be. It is a preference: if Fragmented are taken, the pod gets what is nearest to it, and Holds
// does not hold.
func Near() *Story {
	near := Ring()
	near.Manifest, near.Template, near.Pod = "ring-4-near.yaml", "4-near-devices", "near"
	near.Wants = "four devices as near to each other as possible"
	return near
}

// Links counts those among devices.
func (s *Story) Links(devices []string) int {
	links := 0
	for _, d := range s.Topology.Devices {
		if !slices.Contains(devices, d.Name) {
			continue
		}
		for _, neighbor := range d.Neighbors {
			if slices.Contains(devices, neighbor) && neighbor > d.Name {
				links++
			}
		}
	}
	return links
}
