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

// restIsInfeasible reports whether too few devices are left for the given request and all later requests together. missing
// holds the previous request with the number of devices that it still needs.
func (l *lookahead) restIsInfeasible(claim, request int, missing ...demand) bool {
	if !l.isBounded() || !l.cannotFail[claim][request] {
		return false
	}
	bound, known := l.boundFrom(claim, request, missing)
	return known && (bound.lacksAlternative() || bound.lacksDevices() || bound.lacksValue() || bound.lacksMatches())
}

// demand is a request with the number of devices that the request still needs.
type demand struct {
	*Request
	devices int
}

// capacityBound compares how many devices one request and all later requests still need with how many are left for them.
type capacityBound struct {
	search *Search
	// fixed holds the requests that need a fixed number of devices.
	fixed []demand
	// open holds requests with alternatives and requests with allocationMode All.
	open []Alternatives
	// supplies maps a group of requests to the devices that are left for the group.
	supplies map[*group]*supply
}

// supply holds the devices that are left for one group of requests.
type supply struct {
	devices []*inventory.Candidate
	// admin is true if the requests have admin access. They can then get devices that are in use.
	admin bool
	// reusable is true if some of the devices can be allocated more than once.
	reusable bool
}

func (s *supply) isEnough(wanted int) bool { return s.reusable || len(s.devices) >= wanted }

// isReusable reports whether several requests can get the device.
func (s *supply) isReusable(c *inventory.Candidate) bool { return s.admin || c.Shared }

// boundFrom returns the bound for the given request and all later requests. known is false if a selector has not been evaluated
// for a device that one of the requests could get.
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

// add adds the alternatives of a request to the bound. It returns false if the devices left for an alternative are unknown.
func (b *capacityBound) add(all Alternatives) bool {
	if len(all) == 1 && !all[0].WantsAll() {
		b.fixed = append(b.fixed, demand{all[0], all[0].Count})
	} else {
		b.open = append(b.open, all)
	}
	return !slices.ContainsFunc(all, func(request *Request) bool { return !b.findSupply(request) })
}

// findSupply stores the devices left for the request's group, if they are not stored yet. known is false if they are unknown.
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

// supplyFor returns the devices left for the group of r. sure is false if a selector has not been evaluated for a device.
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

// lacksAlternative reports whether some request lacks devices for each of its alternatives, even if no other request existed.
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

// lacksDevices reports whether the requests of some group need more devices than are left for the group.
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

// lacksValue reports whether a constraint that compares attributes allows fewer devices than its requests need.
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

// isOverstretched reports whether the requests that the constraint under covers need more devices than the constraint allows.
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
				// Several requests can get a shared device, so the number of devices is no upper bound.
				return false
			}
			seen[c.Position] = true
			devices = append(devices, c)
		}
	}
	return under.Most(devices) < wanted
}

// matchingDemand is the number of devices of each group that one matchAttribute constraint needs with the same value. For
// example, a GPU and a NIC on the same PCIe root are one demand. Eight such demands need eight roots with a GPU and a NIC each,
// or fewer roots with several GPUs and NICs.
type matchingDemand struct {
	constraint constraint.Matching
	wanted     map[*group]int
}

// lacksMatches reports whether too few devices are left for all demands with the same key, even if no other request existed.
// Demands with the same key compare the same attribute and need the same number of devices of each group.
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

// matchingDemands returns the demands of constraints that have no device yet. If several constraints compare the same attribute
// for a request, the request counts for the first of them only. So each device of the request counts once.
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

// demandKey returns a key for a demand. Two demands have the same key if they compare the same attribute and need the same
// number of devices of each group.
func (b *capacityBound) demandKey(d *matchingDemand) string {
	counts := make([]int, len(b.search.groups))
	for i, g := range b.search.groups {
		counts[i] = d.wanted[g]
	}
	return fmt.Sprint(d.constraint.AttributeName(), counts)
}

// mostDemands returns an upper bound of the number of demands like d that can be met with the devices that are left.
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

// leastOf returns the minimum of the counts in a and b for each value. A nil map a means that there are no limits.
func leastOf(a, b map[attribute.Scalar]int) map[attribute.Scalar]int {
	if a == nil {
		return b
	}
	for value, count := range b {
		b[value] = min(count, a[value])
	}
	return b
}

// countValues counts the devices left for the group g by attribute value. A reusable device makes its values unlimited.
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

// unlimited exceeds the number of devices in any claim.
const unlimited = 1 << 30
