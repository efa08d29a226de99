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

// Two devices are symmetric if no part of the search can distinguish them. Exchanging two symmetric devices turns one solution
// into another. So if the search fails with one device at some point, it also fails with the other. For example, the search
// tries one of 64 equal GPUs instead of all 64.
//
// Devices are distinguished by driver, pool, capacities, selector verdicts, and the attributes that constraints read. Serial
// numbers do not distinguish them. A device with fields other than attributes and capacities is symmetric to no other device.
// Neither is a device that other nodes can reach.
//
// The exchange must not change the order of devices in an expression. Within the current request the order stays the same,
// because all later devices of the request come after both devices. A later request may place the two devices at different
// indices of its sorted devices. So no device is skipped if a CEL constraint covers a later request. No device is skipped
// either if a later request has allocationMode All. Such a request stops at its first device in use or with an error.

// symmetry finds the symmetric devices of a search.
type symmetry struct {
	search *Search
	// classes caches the result of [symmetry.classOf]. It is valid only if found is true.
	classes []int
	found   bool
	// skipped counts the devices that were skipped because a device of their class had failed.
	skipped int64
}

// classOf returns a class for each position, which symmetric devices share. It returns nil if no devices are symmetric.
func (y *symmetry) classOf() []int {
	if !y.found {
		y.found = true
		y.classes = y.find()
	}
	return y.classes
}

// maySkip reports whether the search may skip a device for the request at p after a symmetric device has failed.
func (y *symmetry) maySkip(p point) bool {
	s := y.search
	if s.Planner.Unbounded || s.SymmetryOff {
		return false
	}
	for claim := p.claim; claim < len(s.Requests); claim++ {
		from := 0
		if claim == p.claim {
			from = p.request + 1
		}
		for _, all := range s.Requests[claim][from:] {
			for _, r := range all {
				if r.WantsAll() || slices.ContainsFunc(r.decides, func(c contribution) bool { return c.covered }) {
					return false
				}
			}
		}
	}
	return true
}

// failedClasses holds the symmetry classes of the devices that have failed at one point of the search.
type failedClasses struct {
	classOf []int
	failed  bitset.Set
	// useless is true if no device may be skipped.
	useless bool
}

func (f *failedClasses) has(position int) bool {
	return f.failed != nil && f.failed.Has(f.classOf[position])
}

func (f *failedClasses) add(y *symmetry, p point, position int) {
	if f.useless {
		return
	}
	if f.failed == nil {
		f.useless = !y.maySkip(p) || y.classOf() == nil
		if f.useless {
			return
		}
		f.classOf, f.failed = y.classOf(), bitset.New(len(y.search.Inventory.Candidates))
	}
	f.failed.Add(f.classOf[position])
}

func (y *symmetry) find() []int {
	// Attributes that only selectors read don't matter here, because the key below contains the verdicts of the selectors.
	s, read := y.search, y.search.ReadByConstraints(y.search.Improves != nil)
	if s.Inventory.Plain.Count() < 2 || !inventory.AreUsable(s.Inventory.Pools) {
		return nil
	}
	seen := s.SymmetryKinds(read, func() []int { return y.byContent(read) })
	if seen == nil {
		return nil
	}
	for _, g := range s.groups {
		if !g.lookedAhead {
			s.lookahead.evaluateSelectors(g.first)
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
			if g.selectors.Verdict(i) == selection.Unknown {
				// A selector fails for the device at position i or has not been evaluated, so no other device is symmetric to it.
				return fmt.Sprint("unknown ", i)
			}
			key += fmt.Sprint(" ", g.selectors.Verdict(i))
		}
		return key
	})
}

// numbered returns a number for each of the n keys. Equal keys get equal numbers. It returns nil if all keys differ.
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

// byContent numbers the devices by driver, capacities and the attributes in read. It returns nil if all devices differ.
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
