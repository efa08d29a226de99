// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
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
// constraint nothing is passed over.

// kindsKey is everything that the kinds of the devices of some hardware depend on.
type kindsKey struct {
	hardware *hardware
	// attributes are those that are read, as text; all if all may be.
	attributes string
	all        bool
}

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
				if slices.ContainsFunc(r.decides, func(c contribution) bool { return c.covered }) {
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
	failed bound.Bits
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
		f.kinds, f.failed = s.alike(), bound.NewBits(len(s.candidates))
	}
	f.failed.Add(f.kinds[position])
}

func (s *search) findKinds() []int {
	names, all := s.attributesRead()
	seen := get(s.cache, s.cache.kinds, kindsKey{s.hardware, names, all}, func() []int { return s.kindsByContent(names, all) })
	numbers := make(map[string]int)
	kinds := make([]int, len(s.candidates))
	for _, g := range s.groups {
		if !g.lookedAhead {
			s.lookAhead(g.requests[0])
		}
	}
	for i, c := range s.candidates {
		key := fmt.Sprint(seen[i], c.pool.poolID, s.available.allocated[i])
		for _, g := range s.groups {
			if g.selectable[i] == selectionUnknown {
				// A selector fails for the device, or may.
				key = fmt.Sprint("unknown ", i)
				break
			}
			key += fmt.Sprint(" ", g.selectable[i])
		}
		if _, known := numbers[key]; !known {
			numbers[key] = len(numbers)
		}
		kinds[i] = numbers[key]
	}
	if len(numbers) == len(kinds) {
		return nil
	}
	return kinds
}

// attributesRead are the attributes that constraints read, as text. all is true if they
// may read any.
func (s *search) attributesRead() (names string, all bool) {
	read := make(map[device.AttributeName]bool)
	for _, c := range s.celConstraints {
		footprint := c.expression.Footprint()
		all = all || footprint.All
		maps.Copy(read, footprint.Attributes)
	}
	for _, requests := range s.requests {
		for _, alternatives := range requests {
			for _, r := range alternatives {
				all = all || len(r.derived) > 0
				for _, c := range r.constraints {
					if attribute, ok := c.(interface {
						attributeName() resourceapi.FullyQualifiedName
					}); ok {
						domain, id, _ := strings.Cut(string(attribute.attributeName()), "/")
						read[device.AttributeName{Domain: domain, ID: id}] = true
					}
				}
			}
		}
	}
	if all {
		return "", true
	}
	var texts []string
	for name := range read {
		texts = append(texts, name.Domain+"/"+name.ID)
	}
	slices.Sort(texts)
	return strings.Join(texts, " "), false
}

// kindsByContent numbers the devices by driver, capacities and the attributes that are
// read.
func (s *search) kindsByContent(names string, all bool) []int {
	read := make(map[string]bool)
	for _, name := range strings.Split(names, " ") {
		read[name] = true
	}
	numbers := make(map[string]int)
	kinds := make([]int, len(s.candidates))
	for i, c := range s.candidates {
		seen := resourceapi.Device{Attributes: c.device.Attributes, Capacity: c.device.Capacity}
		if !all {
			seen.Attributes = make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
			for name, value := range c.device.Attributes {
				qualified := string(name)
				if !strings.Contains(qualified, "/") {
					qualified = c.pool.driver + "/" + qualified
				}
				if read[qualified] {
					seen.Attributes[name] = value
				}
			}
		}
		raw, err := json.Marshal(&seen)
		key := c.pool.driver + " " + string(raw)
		if err != nil {
			key = fmt.Sprint("unknown ", i)
		}
		if _, known := numbers[key]; !known {
			numbers[key] = len(numbers)
		}
		kinds[i] = numbers[key]
	}
	return kinds
}
