// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// A deviceSet is an immutable set of devices. A small set is stored as a list of devices, and a large set as bits.
type deviceSet struct {
	few  []int32
	bits bitset.Set
}

// fewBits is the number of bits that are processed in the same time as one device of the list.
const fewBits = 32

func newSpot(devices bitset.Set) deviceSet {
	count := devices.Count()
	if count*fewBits > 64*len(devices) {
		return deviceSet{bits: devices}
	}
	s := deviceSet{few: make([]int32, 0, count)}
	for i := range devices.All() {
		s.few = append(s.few, int32(i))
	}
	return s
}

func (s *deviceSet) bytes() int {
	return int(unsafe.Sizeof(*s)) + 8*len(s.bits) + int(unsafe.Sizeof(int32(0)))*len(s.few)
}

// has reports whether the set contains all given devices. count is the number of given devices.
func (s *deviceSet) has(devices bitset.Set, count int) bool {
	if s.bits != nil {
		return devices.IsWithin(s.bits)
	}
	return s.countIn(devices) == count
}

// countIn returns the number of devices in both sets.
func (s *deviceSet) countIn(all bitset.Set) int {
	if s.bits != nil {
		return all.CountAnd(s.bits)
	}
	count := 0
	for _, i := range s.few {
		if all.Has(int(i)) {
			count++
		}
	}
	return count
}

func (s *deviceSet) joinTo(other bitset.Set) {
	if s.bits != nil {
		other.Join(s.bits)
	}
	for _, i := range s.few {
		other.Add(int(i))
	}
}
