// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/celset/celset/cel/device/bitset"

// A Part is a set of devices. Every complete set contains exactly Count devices of the part. The parts of a search are disjoint.
// A claim with several requests has a part for each request, if no device is eligible for two requests.
type Part struct {
	Of    bitset.Set
	Count int
}

// left returns the number of devices of the part that must still be added, which is negative if too many are chosen.
func (p *Part) left(s *State) int { return p.Count - s.Chosen.CountAnd(p.Of) }

// Divide sets the parts for all later calls.
func (s *State) Divide(parts []Part) { s.parts = parts }

// propagateParts removes the devices of parts that are complete. It returns false if a part has too many devices or too few.
func (s *State) propagateParts() bool {
	for i := range s.parts {
		p := &s.parts[i]
		left := p.left(s)
		if left < 0 || left > 0 && s.Domain.CountAnd(p.Of) < left {
			return false
		}
		if left == 0 {
			s.Drop(p.Of)
		}
	}
	return true
}

// JoiningOf returns limits of the number of devices from possible that join the set. possible is a part of the domain. The limits
// are valid for completions with the right number of devices of each part.
func (s *State) JoiningOf(possible bitset.Set) (fewest, most int) {
	if s.Left <= 0 {
		return 0, 0
	}
	count := possible.Count()
	most = min(s.Left, count)
	// If too few devices are possible, there is no completion.
	fewest = min(most, max(0, s.Left-(s.Domain.Count()-count)))
	if len(s.parts) == 0 {
		return fewest, most
	}
	fewestOfParts, mostOfParts := 0, 0
	for i := range s.parts {
		p := &s.parts[i]
		left, count := max(0, p.left(s)), possible.CountAnd(p.Of)
		mostOfPart := min(left, count)
		mostOfParts += mostOfPart
		fewestOfParts += min(mostOfPart, max(0, left-(s.Domain.CountAnd(p.Of)-count)))
	}
	most = min(most, mostOfParts)
	return min(most, max(fewest, fewestOfParts)), most
}

// narrowToPart removes the devices that are not in the same part as a device.
func (s *State) narrowToPart(device int, to bitset.Set) {
	for i := range s.parts {
		if of := s.parts[i].Of; of.Has(device) {
			to.Keep(of)
		} else {
			to.Drop(of)
		}
	}
}
