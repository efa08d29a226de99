// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import "github.com/celset/celset/internal/topology"

// cliqueSearch looks for devices that are all linked to each other: what is
// possible beside a chosen device is what it is linked to.
type cliqueSearch struct {
	size  int
	links [maxDevices]Set
}

func newCliqueSearch(t topology.Topology, size int) *cliqueSearch {
	return &cliqueSearch{size: size, links: linksOf(t)}
}

func (s *cliqueSearch) first(free Set) (Set, int) {
	steps := 1
	return s.extend(0, free, s.size, &steps), steps
}

func (s *cliqueSearch) extend(chosen, possible Set, left int, steps *int) Set {
	if left == 0 {
		return chosen
	}
	for possible.Len() >= left {
		d := possible & -possible
		possible &^= d
		*steps++
		beside := possible & s.links[d.lowest()&(maxDevices-1)]
		if found := s.extend(chosen|d, beside, left-1, steps); found != 0 {
			return found
		}
	}
	return 0
}
