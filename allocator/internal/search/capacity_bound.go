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

// restIsInfeasible reports whether this request, all later ones, and the missing devices of the previous request certainly can't
// be met together.
func (l *lookahead) restIsInfeasible(claim, request int, missing ...demand) bool {
	if !l.isBounded() || !l.cannotFail[claim][request] {
		return false
	}
	bound, known := l.boundFrom(claim, request, missing)
	return known && (bound.lacksAlternative() || bound.lacksDevices() || bound.lacksValue() || bound.lacksMatches())
}

// demand is a request with the number of devices that it still needs.
type demand struct {
	*Request
	devices int
}

// capacityBound compares the devices that one request and all later ones still need with the devices that are left.
type capacityBound struct {
	search *Search
	// fixed holds the requests that need a fixed number of devices.
	fixed []demand
	// open holds requests with alternatives and requests for all devices.
	open []Alternatives
	// supplies maps a kind of request to the devices that are left for it.
	supplies map[*group]*supply
}

// supply holds the devices that are left for one kind of request.
type supply struct {
	devices []*inventory.Candidate
	// admin reports whether the requests have admin access, so that other users of a device don't matter.
	admin bool
	// reusable reports whether some of the devices can be allocated more than once.
	reusable bool
}

func (s *supply) isEnough(wanted int) bool { return s.reusable || len(s.devices) >= wanted }

// isReusable reports whether several requests can get the device.
func (s *supply) isReusable(c *inventory.Candidate) bool { return s.admin || c.Shared }

// boundFrom collects the given request and all later ones. known is false if the devices left for them depend on something that
// has not been evaluated.
func (l *lookahead) boundFrom(claim, request int, missing []demand) (b *capacityBound, known bool) {
	s := l.search
	b = &capacityBound{search: s, fixed: missing, supplies: make(map[*group]*supply, len(s.groups))}
	for _, wanted := range missing {
		if !b.findSupply(wanted.Request) {
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

// add adds the alternatives of a request. It returns false if the devices left for one of them can't be determined.
func (b *capacityBound) add(all Alternatives) bool {
	if len(all) == 1 && !all[0].WantsAll() {
		b.fixed = append(b.fixed, demand{all[0], all[0].Count})
	} else {
		b.open = append(b.open, all)
	}
	return !slices.ContainsFunc(all, func(request *Request) bool { return !b.findSupply(request) })
}

// findSupply determines the devices left for a request, once for each kind.
func (b *capacityBound) findSupply(request *Request) (known bool) {
	if b.supplies[request.group] != nil {
		return true
	}
	left, known := b.search.lookahead.supplyFor(request)
	if known {
		b.supplies[request.group] = left
	}
	return known
}

// supplyFor finds the devices left for requests of a kind. sure is false if a selector has not been evaluated for one of them.
func (l *lookahead) supplyFor(r *Request) (left *supply, sure bool) {
	s := l.search
	left = &supply{admin: r.AdminAccess()}
	for _, c := range s.Inventory.Candidates {
		if !left.admin && (s.Available.Allocated().Has(c.Position) || s.Available.Taken().Has(c.Position)) {
			continue
		}
		switch l.eligibilityOf(r, c) {
		case unknown:
			return nil, false
		case eligible:
			left.devices = append(left.devices, c)
			left.reusable = left.reusable || left.isReusable(c)
		}
	}
	return left, true
}

// lacksAlternative reports whether some request has no alternative that could be met even by itself.
func (b *capacityBound) lacksAlternative() bool {
	for _, all := range b.open {
		lacking := 0
		for _, request := range all {
			if !request.WantsAll() && !b.supplies[request.group].isEnough(request.Count) {
				lacking++
			}
		}
		if lacking == len(all) {
			return true
		}
	}
	return false
}

// lacksDevices reports whether the requests of some kind need more devices than are left.
func (b *capacityBound) lacksDevices() bool {
	wanted := make(map[*group]int, len(b.supplies))
	for _, request := range b.fixed {
		wanted[request.group] += request.devices
	}
	for g, devices := range wanted {
		if !b.supplies[g].isEnough(devices) {
			return true
		}
	}
	return false
}

// lacksValue reports whether some constraint admits fewer devices than the requests under it need.
func (b *capacityBound) lacksValue() bool {
	covered := make(map[constraint.Bounding][]demand)
	for _, request := range b.fixed {
		for _, c := range request.constraints {
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

// isOverstretched reports whether the requests under a constraint need more devices than the constraint admits.
func (b *capacityBound) isOverstretched(under constraint.Bounding, requests []demand) bool {
	wanted := 0
	seen := make([]bool, len(b.search.Inventory.Candidates))
	var devices []*inventory.Candidate
	for _, request := range requests {
		wanted += request.devices
		for _, c := range b.supplies[request.group].devices {
			if seen[c.Position] || !under.Admits(c) {
				continue
			}
			if c.Shared {
				// A shared device counts once for each of the requests.
				return false
			}
			seen[c.Position] = true
			devices = append(devices, c)
		}
	}
	return under.Most(devices) < wanted
}

// matchingDemand is the demand of one matchAttribute constraint: a number of devices of each kind, all with the same value. For
// example, a GPU and a NIC on one PCIe root are one demand. Eight such demands need eight roots with both, or fewer roots with
// several of both.
type matchingDemand struct {
	constraint constraint.Matching
	wanted     map[*group]int
}

// lacksMatches reports whether the remaining devices can't meet all demands of some kind, even if no other request existed.
// Demands of one kind compare the same attribute and want the same numbers of devices.
func (b *capacityBound) lacksMatches() bool {
	sorts := make(map[string][]*matchingDemand)
	for _, d := range b.matchingDemands() {
		sort := b.demandKey(d)
		sorts[sort] = append(sorts[sort], d)
	}
	for _, same := range sorts {
		if b.mostDemands(same[0]) < len(same) {
			return true
		}
	}
	return false
}

// matchingDemands returns the demands that have no device yet. For each attribute a request counts under one constraint only,
// so each of its devices counts once.
func (b *capacityBound) matchingDemands() []*matchingDemand {
	var result []*matchingDemand
	known := make(map[constraint.Matching]*matchingDemand)
	for _, request := range b.fixed {
		names := make(map[resourceapi.FullyQualifiedName]bool)
		for _, c := range request.constraints {
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
			known[matching].wanted[request.group] += request.devices
		}
	}
	return result
}

// demandKey returns a key for demands. It is equal for demands that compare the same attribute and want the same number of devices
// of each kind.
func (b *capacityBound) demandKey(d *matchingDemand) string {
	counts := make([]int, len(b.search.groups))
	for i, g := range b.search.groups {
		counts[i] = d.wanted[g]
	}
	return fmt.Sprint(d.constraint.AttributeName(), counts)
}

// mostDemands returns an upper bound of the number of demands like d that the remaining devices can meet.
func (b *capacityBound) mostDemands(d *matchingDemand) int {
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

// leastOf returns the smaller of the two counts of each value. A nil map has no limits.
func leastOf(a, b map[attribute.Scalar]int) map[attribute.Scalar]int {
	if a == nil {
		return b
	}
	for value, count := range b {
		b[value] = min(count, a[value])
	}
	return b
}

// countValues counts the remaining devices by their value. Devices that can be allocated more than once count without limit.
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

// unlimited is more devices than any claim requests.
const unlimited = 1 << 30
