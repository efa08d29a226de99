// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel/device/bitset"
)

// Two devices that look the same to everything that matters are alike: if there is no
// solution with the one in some place, there is none with the other in the same place.
// Each solution with the second would be one with the first, the two exchanged. So of 64
// equal GPUs one is tried, not 64.
//
// What matters is the driver, the pool, capacities, what selectors say, and those
// attributes that a constraint reads: serial numbers don't. Devices that have more to
// them than attributes and capacities are never alike (isPlain).
//
// Exchanging the two must not change the order in which an expression sees devices. In
// the request at hand it does not, since all that comes later in it comes after both.
// Requests after it may have either, among others: so if one of them is covered by a CEL
// constraint nothing is passed over. Nor is anything if one of them is for all devices: it
// takes them in order, and which of two devices is in use decides what it meets first.

// alike returns for each position the number of a kind, the same for devices that are
// alike. nil if no two devices are.
func (s *search) alike() []int {
	if !s.kindsFound {
		s.kindsFound = true
		s.kinds = s.findKinds()
	}
	return s.kinds
}

// mayPassOver tells whether devices may be passed over for a request.
func (s *search) mayPassOver(p place) bool {
	if s.unbounded || !s.isPlain {
		return false
	}
	for claim := p.claim; claim < len(s.requests); claim++ {
		from := 0
		if claim == p.claim {
			from = p.request + 1
		}
		for _, all := range s.requests[claim][from:] {
			for _, r := range all {
				if r.wantsAll() || slices.ContainsFunc(r.decides, func(c contribution) bool { return c.covered }) {
					return false
				}
			}
		}
	}
	return true
}

// failedKinds are the kinds of devices with which there is no solution in some place.
type failedKinds struct {
	kinds  []int
	failed bitset.Set
	// useless: no device may be passed over.
	useless bool
}

func (f *failedKinds) has(position int) bool {
	return f.failed != nil && f.failed.Has(f.kinds[position])
}

func (f *failedKinds) add(s *search, p place, position int) {
	if f.useless {
		return
	}
	if f.failed == nil {
		f.useless = !s.mayPassOver(p) || s.alike() == nil
		if f.useless {
			return
		}
		f.kinds, f.failed = s.alike(), bitset.New(len(s.candidates))
	}
	f.failed.Add(f.kinds[position])
}

func (s *search) findKinds() []int {
	read := s.attributesRead()
	seen := s.cache.kinds.Get(kindsKey{s.hardware().number, read}, func() []int { return s.kindsByContent(read) })
	if seen == nil {
		return nil
	}
	for _, g := range s.groups {
		if !g.lookedAhead {
			s.lookAhead(g.requests[0])
		}
	}
	return numbered(len(s.candidates), func(i int) string {
		c := s.candidates[i]
		key := fmt.Sprint(seen[i], c.pool.poolID, s.available.allocated.Has(i))
		for _, g := range s.groups {
			if g.selections.of(i) == selectionUnknown {
				// A selector fails for the device, or may.
				return fmt.Sprint("unknown ", i)
			}
			key += fmt.Sprint(" ", g.selections.of(i))
		}
		return key
	})
}

// numbered gives equal keys equal numbers. nil if no two are equal.
func numbered(n int, key func(int) string) []int {
	numbers := make(map[string]int, n)
	kinds := make([]int, n)
	for i := range n {
		text := key(i)
		if _, known := numbers[text]; !known {
			numbers[text] = len(numbers)
		}
		kinds[i] = numbers[text]
	}
	if len(numbers) == n {
		return nil
	}
	return kinds
}

// attributesRead are the attributes that constraints read.
func (s *search) attributesRead() footprint {
	var read footprint
	for _, c := range s.celConstraints {
		read = read.with(readBy(c.definition))
	}
	for _, requests := range s.requests {
		for _, alternatives := range requests {
			for _, r := range alternatives {
				if len(r.derived) > 0 {
					return anyAttribute
				}
				for _, c := range r.constraints {
					if attribute, ok := c.(attributeReader); ok {
						read = read.with(attributeNamed(attribute.attributeName()))
					}
				}
			}
		}
	}
	return read
}

// attributeReader is a constraint on one attribute.
type attributeReader interface {
	attributeName() resourceapi.FullyQualifiedName
}

// kindsByContent numbers the devices by driver, capacities and the attributes that are
// read. nil if no two are equal.
func (s *search) kindsByContent(read footprint) []int {
	readers := map[string]func(resourceapi.QualifiedName) bool{}
	return numbered(len(s.candidates), func(i int) string {
		c := s.candidates[i]
		seen := resourceapi.Device{Attributes: c.device.Attributes}
		if !read.all {
			reads := readers[c.pool.driver]
			if reads == nil {
				reads = read.reader(c.pool.driver)
				readers[c.pool.driver] = reads
			}
			seen.Attributes = maps.Clone(seen.Attributes)
			maps.DeleteFunc(seen.Attributes, func(name resourceapi.QualifiedName, _ resourceapi.DeviceAttribute) bool { return !reads(name) })
		}
		raw, err := seen.Marshal()
		if err != nil || hasEmptyList(seen.Attributes) {
			return fmt.Sprint("unknown ", i)
		}
		return c.pool.driver + " " + string(append(appendCapacities(nil, c.device.Capacity), raw...))
	})
}
