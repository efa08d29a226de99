// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
)

// restIsInfeasible reports whether the requests from the given one on can't be met,
// all of them together and besides what is still missing of the one before them.
func (l *lookahead) restIsInfeasible(claim, request int, missing ...demand) bool {
	if !l.isBounded() || !l.cannotFail[claim][request] {
		return false
	}
	bound, known := l.boundFrom(claim, request, missing)
	return known && (bound.lacksAlternative() || bound.lacksDevices() || bound.lacksValue() || bound.lacksMatches())
}

// demand is what a request still wants. It wants a certain number of devices.
type demand struct {
	*Request
	devices int
}

// capacityBound holds what is still to be found from some request on against what is left.
type capacityBound struct {
	search *Search
	// fixed are the requests for a certain number of devices.
	fixed []demand
	// open are the others: those with alternatives and those for all devices.
	open []Alternatives
	// supplies are the devices that are left for each kind of request.
	supplies map[*group]*supply
}

// supply is what is left for requests of a kind.
type supply struct {
	devices []*inventory.Candidate
	// admin: the requests share devices with everybody.
	admin bool
	// reusable: some of the devices can be had more than once.
	reusable bool
}

func (s *supply) isEnough(wanted int) bool { return s.reusable || len(s.devices) >= wanted }

// isReusable reports whether the device can be had for several requests.
func (s *supply) isReusable(c *inventory.Candidate) bool { return s.admin || c.Shared }

// boundFrom collects the requests from the given one on. known is false if
// something would have to be evaluated to tell which devices are left for them.
func (l *lookahead) boundFrom(claim, request int, missing []demand) (b *capacityBound, known bool) {
	s := l.search
	b = &capacityBound{search: s, fixed: missing, supplies: make(map[*group]*supply, len(s.groups))}
	for _, wanted := range missing {
		if !b.look(wanted.Request) {
			return nil, false
		}
	}
	for i := claim; i < len(s.Requests); i++ {
		first := 0
		if i == claim {
			first = request
		}
		for _, all := range s.Requests[i][first:] {
			if !b.add(all) {
				return nil, false
			}
		}
	}
	return b, true
}

// add is false if the devices that are left for one of the alternatives are not
// known.
func (b *capacityBound) add(all Alternatives) bool {
	if len(all) == 1 && !all[0].WantsAll() {
		b.fixed = append(b.fixed, demand{all[0], all[0].Count})
	} else {
		b.open = append(b.open, all)
	}
	return !slices.ContainsFunc(all, func(request *Request) bool { return !b.look(request) })
}

// look finds out what is left for a request, once for each kind.
func (b *capacityBound) look(request *Request) (known bool) {
	if b.supplies[request.Group] != nil {
		return true
	}
	left, known := b.search.Lookahead.supplyFor(request)
	if known {
		b.supplies[request.Group] = left
	}
	return known
}

// supplyFor finds the devices that are left for requests of a kind.
func (l *lookahead) supplyFor(r *Request) (left *supply, sure bool) {
	s := l.search
	left = &supply{admin: r.AdminAccess()}
	for _, c := range s.Inventory.Candidates {
		if !left.admin && (s.Available.Allocated().Has(c.Position) || s.Available.Taken().Has(c.Position)) {
			continue
		}
		switch l.know(r, c) {
		case unknown:
			return nil, false
		case eligible:
			left.devices = append(left.devices, c)
			left.reusable = left.reusable || left.isReusable(c)
		}
	}
	return left, true
}

// lacksAlternative: there is a request of which no alternative can be met, not
// even alone.
func (b *capacityBound) lacksAlternative() bool {
	for _, all := range b.open {
		lacking := 0
		for _, request := range all {
			if !request.WantsAll() && !b.supplies[request.Group].isEnough(request.Count) {
				lacking++
			}
		}
		if lacking == len(all) {
			return true
		}
	}
	return false
}

// lacksDevices: more devices of a kind are wanted than are left.
func (b *capacityBound) lacksDevices() bool {
	wanted := make(map[*group]int, len(b.supplies))
	for _, request := range b.fixed {
		wanted[request.Group] += request.devices
	}
	for g, devices := range wanted {
		if !b.supplies[g].isEnough(devices) {
			return true
		}
	}
	return false
}

// lacksValue: a constraint does not admit as many devices as are wanted under it.
func (b *capacityBound) lacksValue() bool {
	covered := make(map[constraint.Bounding][]demand)
	for _, request := range b.fixed {
		for _, c := range request.Constraints {
			if bounding, ok := c.(constraint.Bounding); ok {
				covered[bounding] = append(covered[bounding], request)
			}
		}
	}
	for under, requests := range covered {
		if b.isOverstretched(under, requests) {
			return true
		}
	}
	return false
}

// isOverstretched compares what the requests want under a constraint with what it
// admits of the devices that are left for any of them.
func (b *capacityBound) isOverstretched(under constraint.Bounding, requests []demand) bool {
	wanted := 0
	seen := make([]bool, len(b.search.Inventory.Candidates))
	var devices []*inventory.Candidate
	for _, request := range requests {
		wanted += request.devices
		for _, c := range b.supplies[request.Group].devices {
			if seen[c.Position] || !under.Admits(c) {
				continue
			}
			if c.Shared {
				// It counts once for each of the requests.
				return false
			}
			seen[c.Position] = true
			devices = append(devices, c)
		}
	}
	return under.Most(devices) < wanted
}

// matchingDemand is what one constraint for matching devices wants: so many of each
// kind, all with one value. A GPU and a NIC on one PCIe root is one, and eight of them
// need eight roots with both, or roots with several of both.
type matchingDemand struct {
	constraint constraint.Matching
	wanted     map[*group]int
}

// lacksMatches: more demands of a sort are wanted than the values have room for,
// even if nothing else were wanted.
func (b *capacityBound) lacksMatches() bool {
	sorts := make(map[string][]*matchingDemand)
	for _, d := range b.matchingDemands() {
		sort := b.sortOf(d)
		sorts[sort] = append(sorts[sort], d)
	}
	for _, same := range sorts {
		if b.room(same[0]) < len(same) {
			return true
		}
	}
	return false
}

// matchingDemands are those for which nothing was taken yet. No request is part of two
// with the same attribute, so no device is.
func (b *capacityBound) matchingDemands() []*matchingDemand {
	var result []*matchingDemand
	known := make(map[constraint.Matching]*matchingDemand)
	for _, request := range b.fixed {
		names := make(map[resourceapi.FullyQualifiedName]bool)
		for _, c := range request.Constraints {
			matching, ok := c.(constraint.Matching)
			if !ok || names[matching.AttributeName()] {
				continue
			}
			names[matching.AttributeName()] = true
			if !matching.IsUndecided() {
				continue
			}
			if known[matching] == nil {
				known[matching] = &matchingDemand{matching, make(map[*group]int)}
				result = append(result, known[matching])
			}
			known[matching].wanted[request.Group] += request.devices
		}
	}
	return result
}

// sortOf is equal for demands that want the same.
func (b *capacityBound) sortOf(d *matchingDemand) string {
	counts := make([]int, len(b.search.groups))
	for i, g := range b.search.groups {
		counts[i] = d.wanted[g]
	}
	return fmt.Sprint(d.constraint.AttributeName(), counts)
}

// room is how many demands of this sort the devices that are left can meet at most.
func (b *capacityBound) room(d *matchingDemand) int {
	var places map[attribute.Scalar]int
	for g, wanted := range d.wanted {
		if wanted == 0 {
			continue
		}
		counts := b.countValues(g, d.constraint)
		for value := range counts {
			counts[value] /= wanted
		}
		places = leastOf(places, counts)
	}
	if places == nil {
		return unlimited
	}
	room := 0
	for _, demands := range places {
		room = min(room+demands, unlimited)
	}
	return room
}

// leastOf is the lesser count of each value. A nil map counts without limit.
func leastOf(a, b map[attribute.Scalar]int) map[attribute.Scalar]int {
	if a == nil {
		return b
	}
	for value, count := range b {
		b[value] = min(count, a[value])
	}
	return b
}

// countValues counts the devices that are left by their value. Those that can be
// had more than once count without limit.
func (b *capacityBound) countValues(g *group, by constraint.Matching) map[attribute.Scalar]int {
	counts := make(map[attribute.Scalar]int)
	for _, c := range b.supplies[g].devices {
		for value := range by.Values(c) {
			if b.supplies[g].isReusable(c) {
				counts[value] = unlimited
			} else if counts[value] < unlimited {
				counts[value]++
			}
		}
	}
	return counts
}

// unlimited is more than any claim wants.
const unlimited = 1 << 30
