// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device/bitset"
)

// Two devices that look the same to everything that matters are symmetric: if there is no
// solution with the one in some place, there is none with the other in the same place.
// Each solution with the second would be one with the first, the two exchanged. So of 64
// equal GPUs one is tried, not 64.
//
// What matters is the driver, the pool, capacities, what selectors say, and those
// attributes that a constraint reads: serial numbers don't. A device that has more to
// it than attributes and capacities, or can be reached from other nodes, is like no other.
//
// Exchanging the two must not change the order in which an expression sees devices. In
// the request at hand it does not, since all that comes later in it comes after both.
// Requests after it may have either, among others: so if one of them is covered by a CEL
// constraint nothing is passed over. Nor is anything if one of them is for all devices: it
// takes them in order, and which of two devices is in use decides what it meets first.

// symmetry knows the symmetric devices of one search.
type symmetry struct {
	search *Search
	// classes has what [symmetry.ClassOf] returns, once it was found.
	classes []int
	found   bool
	// passedOver counts the devices that were not tried because one of their class had failed.
	passedOver int64
}

// ClassOf returns for each position the number of a symmetry class, the same for devices that
// are symmetric. nil if no two devices are.
func (y *symmetry) ClassOf() []int {
	if !y.found {
		y.found = true
		y.classes = y.find()
	}
	return y.classes
}

// mayPassOver reports whether devices may be passed over for a request.
func (y *symmetry) mayPassOver(p Place) bool {
	s := y.search
	if s.Planner.Unbounded || s.TellsApart {
		return false
	}
	for claim := p.claim; claim < len(s.Requests); claim++ {
		from := 0
		if claim == p.claim {
			from = p.request + 1
		}
		for _, all := range s.Requests[claim][from:] {
			for _, r := range all {
				if r.WantsAll() || slices.ContainsFunc(r.Decides, func(c Contribution) bool { return c.Covered }) {
					return false
				}
			}
		}
	}
	return true
}

// failedClasses are the symmetry classes of devices with which there is no solution in some
// place.
type failedClasses struct {
	classOf []int
	failed  bitset.Set
	// useless: no device may be passed over.
	useless bool
}

func (f *failedClasses) has(position int) bool {
	return f.failed != nil && f.failed.Has(f.classOf[position])
}

func (f *failedClasses) add(y *symmetry, p Place, position int) {
	if f.useless {
		return
	}
	if f.failed == nil {
		f.useless = !y.mayPassOver(p) || y.ClassOf() == nil
		if f.useless {
			return
		}
		f.classOf, f.failed = y.ClassOf(), bitset.New(len(y.search.Inventory.Candidates))
	}
	f.failed.Add(f.classOf[position])
}

func (y *symmetry) find() []int {
	// Selectors were evaluated already.
	s, read := y.search, y.search.ReadByConstraints(y.search.Improves != nil)
	if s.Inventory.Plain.Count() < 2 || !inventory.AreUsable(s.Inventory.Pools) {
		return nil
	}
	seen := s.SymmetryKinds(read, func() []int { return y.byContent(read) })
	if seen == nil {
		return nil
	}
	for _, g := range s.groups {
		if !g.LookedAhead {
			s.Lookahead.Look(g.first)
		}
	}
	return numbered(len(s.Inventory.Candidates), func(i int) string {
		c := s.Inventory.Candidates[i]
		if !s.Inventory.Plain.Has(i) {
			return fmt.Sprint("unknown ", i)
		}
		key := fmt.Sprint(seen[i], c.Pool.ID, s.Available.Allocated().Has(i))
		if s.accepts != nil {
			key += s.accepts.key(i)
		}
		for _, g := range s.groups {
			if g.Selectors.Verdict(i) == selection.Unknown {
				// A selector fails for the device, or may.
				return fmt.Sprint("unknown ", i)
			}
			key += fmt.Sprint(" ", g.Selectors.Verdict(i))
		}
		return key
	})
}

// numbered gives equal keys equal numbers. nil if no two are equal.
func numbered(n int, key func(int) string) []int {
	numbers := make(map[string]int, n)
	numberOf := make([]int, n)
	for i := range n {
		text := key(i)
		if _, known := numbers[text]; !known {
			numbers[text] = len(numbers)
		}
		numberOf[i] = numbers[text]
	}
	if len(numbers) == n {
		return nil
	}
	return numberOf
}

// byContent numbers the devices by driver, capacities and the attributes that are
// read. nil if no two are equal.
func (y *symmetry) byContent(read view.ReadSet) []int {
	candidates, readers := y.search.Inventory.Candidates, map[string]func(resourceapi.QualifiedName) bool{}
	return numbered(len(candidates), func(i int) string {
		c := candidates[i]
		seen := resourceapi.Device{Attributes: c.Device.Attributes}
		if !read.IsAny() {
			reads := readers[c.Pool.Driver]
			if reads == nil {
				reads = read.Reader(c.Pool.Driver)
				readers[c.Pool.Driver] = reads
			}
			seen.Attributes = make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
			for name, attribute := range c.Device.Attributes {
				if reads(name) {
					seen.Attributes[name] = attribute
				}
			}
		}
		raw, err := seen.Marshal()
		if err != nil || view.HasEmptyList(seen.Attributes) {
			return fmt.Sprint("unknown ", i)
		}
		return c.Pool.Driver + " " + string(append(fingerprint.AppendCapacities(nil, c.Device.Capacity), raw...))
	})
}
