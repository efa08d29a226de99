// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import "github.com/celset/celset/internal/topology"

// pairSearch looks for a number of whole pairs in a topology in which each device
// is linked to exactly one other: two GPUs at a bridge, a GPU and a NIC at a PCIe
// root. A pair never spoils another one, so nothing is ever given back.
type pairSearch struct {
	pairs int
	links [maxDevices]Set
}

func newPairSearch(t topology.Topology, pairs int) *pairSearch {
	return &pairSearch{pairs: pairs, links: linksOf(t)}
}

func (s *pairSearch) first(free Set) (Set, int) {
	steps := 1
	var chosen Set
	for left := s.pairs; left > 0; {
		if free == 0 {
			return 0, steps
		}
		steps++
		d := free & -free
		partner := s.links[d.lowest()&(maxDevices-1)] & free
		free &^= d | partner
		if partner != 0 {
			steps++
			chosen |= d | partner
			left--
		}
	}
	return chosen, steps
}
