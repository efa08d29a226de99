// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"iter"
	"math/bits"
)

// Set is a set of devices of a scenario: bit i is the device of that index in
// Topology.Devices.
type Set uint64

// maxDevices is what fits into a Set.
const maxDevices = 64

// first is the set of the first n devices.
func first(n int) Set {
	if n >= maxDevices {
		return ^Set(0)
	}
	return 1<<n - 1
}

// bit is the set of one device.
func bit(i int) Set { return 1 << i }

// Len is the number of devices in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Has tells whether the device of index i is in the set.
func (s Set) Has(i int) bool { return s&bit(i) != 0 }

// All yields the indices of the devices in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(s.lowest()) {
				return
			}
		}
	}
}

// lowest is the index of the first device, of a set that is not empty.
func (s Set) lowest() int { return bits.TrailingZeros64(uint64(s)) }
