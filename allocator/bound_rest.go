// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
)

// restIsInfeasible tells whether the requests from the given one on can't be met,
// all of them together and besides what is still missing of the one before them.
func (s *search) restIsInfeasible(claim, request int, missing ...demand) bool {
	if !s.isBounded() || !s.cannotFail[claim][request] {
		return false
	}
	rest, known := s.restFrom(claim, request, missing)
	return known && (rest.lacksAlternative() || rest.lacksDevices() || rest.lacksValue() || rest.lacksBundles())
}

// demand is what a request still wants. It wants a certain number of devices.
type demand struct {
	*request
	devices int
}

// rest is what is still to be found from some request on.
type rest struct {
	search *search
	// fixed are the requests for a certain number of devices.
	fixed []demand
	// open are the others: those with alternatives and those for all devices.
	open []alternatives
	// stocks are the devices that are left for each kind of request.
	stocks map[*group]*stock
}

// stock is what is left for requests of a kind.
type stock struct {
	devices []*inventory.Candidate
	// admin: the requests share devices with everybody.
	admin bool
	// reusable: some of the devices can be had more than once.
	reusable bool
}

func (s *stock) isEnough(wanted int) bool { return s.reusable || len(s.devices) >= wanted }

// isReusable tells whether the device can be had for several requests.
func (s *stock) isReusable(c *inventory.Candidate) bool { return s.admin || c.Shared }

// restFrom collects the requests from the given one on. known is false if
// something would have to be evaluated to tell which devices are left for them.
func (s *search) restFrom(claim, request int, missing []demand) (r *rest, known bool) {
	r = &rest{search: s, fixed: missing, stocks: make(map[*group]*stock, len(s.groups))}
	for _, wanted := range missing {
		if !r.look(wanted.request) {
			return nil, false
		}
	}
	for i := claim; i < len(s.requests); i++ {
		first := 0
		if i == claim {
			first = request
		}
		for _, all := range s.requests[i][first:] {
			if !r.add(all) {
				return nil, false
			}
		}
	}
	return r, true
}

// add is false if the devices that are left for one of the alternatives are not
// known.
func (r *rest) add(all alternatives) bool {
	if len(all) == 1 && !all[0].wantsAll() {
		r.fixed = append(r.fixed, demand{all[0], all[0].count})
	} else {
		r.open = append(r.open, all)
	}
	return !slices.ContainsFunc(all, func(request *request) bool { return !r.look(request) })
}

// look finds out what is left for a request, once for each kind.
func (r *rest) look(request *request) (known bool) {
	if r.stocks[request.group] != nil {
		return true
	}
	left, known := r.search.stockFor(request)
	if known {
		r.stocks[request.group] = left
	}
	return known
}

// stockFor finds the devices that are left for requests of a kind.
func (s *search) stockFor(r *request) (left *stock, sure bool) {
	left = &stock{admin: r.adminAccess()}
	for _, c := range s.inventory.Candidates {
		if !left.admin && (s.available.allocated.Has(c.Position) || s.available.taken.Has(c.Position)) {
			continue
		}
		switch s.know(r, c) {
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
func (r *rest) lacksAlternative() bool {
	for _, all := range r.open {
		lacking := 0
		for _, request := range all {
			if !request.wantsAll() && !r.stocks[request.group].isEnough(request.count) {
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
func (r *rest) lacksDevices() bool {
	wanted := make(map[*group]int, len(r.stocks))
	for _, request := range r.fixed {
		wanted[request.group] += request.devices
	}
	for g, devices := range wanted {
		if !r.stocks[g].isEnough(devices) {
			return true
		}
	}
	return false
}

// lacksValue: a constraint does not admit as many devices as are wanted under it.
func (r *rest) lacksValue() bool {
	covered := make(map[boundingConstraint][]demand)
	for _, request := range r.fixed {
		for _, c := range request.constraints {
			if bounding, ok := c.(boundingConstraint); ok {
				covered[bounding] = append(covered[bounding], request)
			}
		}
	}
	for constraint, requests := range covered {
		if r.isOverstretched(constraint, requests) {
			return true
		}
	}
	return false
}

// isOverstretched compares what the requests want under a constraint with what it
// admits of the devices that are left for any of them.
func (r *rest) isOverstretched(constraint boundingConstraint, requests []demand) bool {
	wanted := 0
	seen := make([]bool, len(r.search.inventory.Candidates))
	var devices []*inventory.Candidate
	for _, request := range requests {
		wanted += request.devices
		for _, c := range r.stocks[request.group].devices {
			if seen[c.Position] || !constraint.admits(c) {
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
	return constraint.most(devices) < wanted
}

// A bundle is what one constraint for matching devices wants: so many of each
// kind, all with one value. A GPU and a NIC on one PCIe root is a bundle, and eight
// of them need eight roots with both, or roots with several of both.
type bundle struct {
	constraint matchingConstraint
	wanted     map[*group]int
}

// lacksBundles: more bundles of a sort are wanted than the values have room for,
// even if nothing else were wanted.
func (r *rest) lacksBundles() bool {
	sorts := make(map[string][]*bundle)
	for _, b := range r.bundles() {
		sort := r.sortOf(b)
		sorts[sort] = append(sorts[sort], b)
	}
	for _, same := range sorts {
		if r.room(same[0]) < len(same) {
			return true
		}
	}
	return false
}

// bundles are those for which nothing was taken yet. No request is part of two
// bundles with the same attribute, so no device is.
func (r *rest) bundles() []*bundle {
	var result []*bundle
	known := make(map[matchingConstraint]*bundle)
	for _, request := range r.fixed {
		names := make(map[resourceapi.FullyQualifiedName]bool)
		for _, c := range request.constraints {
			matching, ok := c.(matchingConstraint)
			if !ok || names[matching.attributeName()] {
				continue
			}
			names[matching.attributeName()] = true
			if !matching.isUndecided() {
				continue
			}
			if known[matching] == nil {
				known[matching] = &bundle{matching, make(map[*group]int)}
				result = append(result, known[matching])
			}
			known[matching].wanted[request.group] += request.devices
		}
	}
	return result
}

// sortOf is equal for bundles that want the same.
func (r *rest) sortOf(b *bundle) string {
	counts := make([]int, len(r.search.groups))
	for i, g := range r.search.groups {
		counts[i] = b.wanted[g]
	}
	return fmt.Sprint(b.constraint.attributeName(), counts)
}

// room is how many bundles of this sort the devices that are left can make at most.
func (r *rest) room(b *bundle) int {
	var places map[scalar]int
	for g, wanted := range b.wanted {
		if wanted == 0 {
			continue
		}
		counts := r.countValues(g, b.constraint)
		for value := range counts {
			counts[value] /= wanted
		}
		places = leastOf(places, counts)
	}
	if places == nil {
		return unlimited
	}
	room := 0
	for _, bundles := range places {
		room = min(room+bundles, unlimited)
	}
	return room
}

// leastOf is the lesser count of each value. A nil map counts without limit.
func leastOf(a, b map[scalar]int) map[scalar]int {
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
func (r *rest) countValues(g *group, constraint matchingConstraint) map[scalar]int {
	counts := make(map[scalar]int)
	for _, c := range r.stocks[g].devices {
		for value := range constraint.values(c) {
			if r.stocks[g].isReusable(c) {
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
