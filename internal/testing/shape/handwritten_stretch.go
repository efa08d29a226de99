// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

// stretchSearch looks for contiguous devices of a ring. The first device of a set
// says where the stretch begins, except for device 0, which may also be in one
// that began at the end of the ring.
type stretchSearch struct {
	ring, size int
	// wraps: the stretch may reach over the place where the ring closes.
	wraps bool
}

func (s stretchSearch) first(free Set) (Set, int) {
	steps := 1
	for rest := free; rest != 0; rest &= rest - 1 {
		start := rest.lowest()
		steps++
		if start+s.size <= s.ring {
			if stretch := first(s.size) << start; stretch&^free == 0 {
				return stretch, steps + s.size - 1
			}
		}
		if start > 0 || !s.wraps {
			continue
		}
		// Those with more devices from the beginning come first in order.
		for head := s.size - 1; head > 0; head-- {
			steps++
			tail := first(s.size-head) << (s.ring - s.size + head)
			if stretch := first(head) | tail; stretch&^free == 0 {
				return stretch, steps + s.size - 1
			}
		}
	}
	return 0, steps
}
