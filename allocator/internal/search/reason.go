// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// reason explains why a search found no solution. It returns the first explanation in this list that applies:
//
//   - The requests with allocationMode All need more devices than a claim can have.
//   - Too few devices are free for a request, even if no other request existed.
//   - No set satisfies a CEL constraint.
//   - Requests and constraints can't be met together.
//
// A constraint that refused no set is not named, because another part of the claims is the cause.
//
// The text contains no numbers that differ between nodes, because the scheduler writes a line for each distinct reason. Package
// explain reports the numbers for one node.
//
// reason uses only results that the search has stored. It evaluates no expression, because the evaluation might fail.
type reason struct{ search *Search }

// Reason returns why the search found nothing.
func (s *Search) Reason() string { return reason{s}.String() }

func (y reason) String() string {
	s := y.search
	if why := y.overLimit(); why != "" {
		return why
	}
	for i, requests := range s.Requests {
		for _, all := range requests {
			if why := y.shortages(all); why != "" {
				return y.prefix(i) + why
			}
		}
	}
	for _, c := range s.celConstraints {
		if c.refused() > 0 && c.accepted == 0 {
			return y.prefix(c.claimIndex) + y.unsatisfied(c)
		}
	}
	for _, c := range s.celConstraints {
		if c.refused() > 0 && c.accepted > 0 {
			return y.prefix(c.claimIndex) + fmt.Sprintf("some sets of free devices satisfy constraint %s, but not the rest of the claims", c.Name)
		}
	}
	return "no combination of free devices meets all requests and constraints"
}

// overLimit returns the reason for a claim that needs more devices than a claim can have, by its requests with allocationMode
// All. It returns "" if there is no such claim. A claim that exceeds the limit on every node already fails in setup.
func (y reason) overLimit() string {
	limit := y.search.Planner.MaxResults
	for i, requests := range y.search.Requests {
		devices, wantAll := 0, []string(nil)
		for _, all := range requests {
			devices += all.least().Count
			if slices.ContainsFunc(all, func(r *Request) bool { return r.WantsAll() }) {
				wantAll = append(wantAll, cmp.Or(all[0].Parent, all[0].Name))
			}
		}
		if devices > limit {
			return y.prefix(i) + fmt.Sprintf("request %s: with allocationMode All, the claim would exceed the limit of %d devices: add a selector, or ask for a count",
				strings.Join(wantAll, ", "), limit)
		}
	}
	return ""
}

// prefix returns the name of the claim for a message, or "" if the pod has a single claim.
func (y reason) prefix(claim int) string {
	if len(y.search.Claims) == 1 {
		return ""
	}
	return fmt.Sprintf("claim %s: ", y.search.Claims[claim].Name)
}

// shortages joins the shortages of all alternatives. It returns "" if some alternative has no shortage.
func (y reason) shortages(all Alternatives) string {
	var lacks []string
	for _, r := range all {
		why := y.shortage(r)
		if why == "" {
			return ""
		}
		lacks = append(lacks, why)
	}
	return strings.Join(lacks, "; ")
}

// shortage returns a text about the devices that the request lacks even if no other request existed. It returns "" if no device
// is missing, or if the search has not examined enough devices to know.
func (y reason) shortage(r *Request) string {
	free, known := y.free(r)
	switch {
	case r.WantsAll() && len(r.all) == 0:
		return fmt.Sprintf("request %s: no device matches, but allocationMode All needs at least one", r.Name)
	case r.WantsAll() && free < r.Count:
		return fmt.Sprintf("request %s: only %d of %d matching devices are free, but allocationMode All needs all of them", r.Name, free, r.Count)
	case r.WantsAll() && isRefused(r):
		return fmt.Sprintf("request %s: the matching devices do not satisfy the constraints of the claim, but allocationMode All needs all of them", r.Name)
	case !r.WantsAll() && known && free < r.Count:
		return fmt.Sprintf("request %s: too few matching devices are free (%d of %d requested)", r.Name, free, r.Count)
	default:
		return ""
	}
}

// isRefused reports whether a constraint that compares attributes refuses the devices of a request with allocationMode All,
// even if no other request existed.
func isRefused(r *Request) bool {
	return slices.ContainsFunc(r.bounding, func(b constraint.Bounding) bool {
		admitted := slices.DeleteFunc(slices.Clone(r.all), func(c *inventory.Candidate) bool { return !b.Admits(c) })
		return len(admitted) < len(r.all) || b.Most(admitted) < len(r.all)
	})
}

// free counts the devices that the request could get without other requests. known is false if some were not examined.
func (y reason) free(r *Request) (free int, known bool) {
	s := y.search
	known = true
	for _, c := range s.Inventory.Candidates {
		switch {
		case s.Available.Allocated().Has(c.Position) && !r.AdminAccess():
		case r.group.selectors.Verdict(c.Position) == selection.Unknown:
			known = known && s.evaluator.NeverSelects(c)
		case r.group.selectors.Verdict(c.Position) == selection.Selected && s.Available.IsUsable(&r.Request, c):
			// The search has given back all its devices, so HasCapacity depends only on c and earlier allocations.
			if enough, err := s.Available.HasCapacity(&r.Request, c); err == nil && enough {
				free++
			}
		}
	}
	return free, known
}

// unsatisfied returns the reason for a CEL constraint that accepted no set.
func (y reason) unsatisfied(c *CELConstraint) string {
	if compared := comparedBeside(c); compared != "" {
		// The search showed the constraint only sets that satisfy the constraints on attributes.
		return fmt.Sprintf("no set of free devices satisfies constraint %s and %s together", c.Name, compared)
	}
	if len(c.covered) == 1 && len(c.covered[0]) == 1 {
		r := c.covered[0][0]
		free, known := y.free(r)
		sets := new(big.Int).Binomial(int64(free), int64(r.Count))
		// The constraint alone is the cause if all sets were evaluated, or if no other part of the claims can have excluded a set.
		if known && (sets.Cmp(big.NewInt(c.rejected)) == 0 || y.isPruned(c) && len(r.constraints) == 1 && y.isFirst(c) && !y.hasCounters()) {
			if r.Count == 1 {
				return fmt.Sprintf("no free device satisfies constraint %s", c.Name)
			}
			return fmt.Sprintf("no set of %d free devices satisfies constraint %s", r.Count, c.Name)
		}
	}
	return fmt.Sprintf("no set of free devices satisfies constraint %s and the rest of the claim together", c.Name)
}

// maxCompared is the maximum number of attribute constraints that a reason names.
const maxCompared = 3

// comparedBeside names the attribute constraints that cover a request of the CEL constraint c.
func comparedBeside(c *CELConstraint) string {
	var names []string
	for i := range c.claim.Spec.Devices.Constraints {
		api := &c.claim.Spec.Devices.Constraints[i]
		covers := func(r *Request) bool { return constraint.Covers(api, &r.Request) }
		if !slices.ContainsFunc(c.covered, func(all Alternatives) bool { return slices.ContainsFunc(all, covers) }) {
			continue
		}
		switch {
		case api.DistinctAttribute != nil:
			names = append(names, "distinctAttribute "+string(*api.DistinctAttribute))
		case api.MatchAttribute != nil && !strings.HasPrefix(string(*api.MatchAttribute), v1alpha1.AttributeDomain+"/"):
			names = append(names, "matchAttribute "+string(*api.MatchAttribute))
		}
	}
	if len(names) > maxCompared {
		names = append(names[:maxCompared], "others")
	}
	return strings.Join(names, ", ")
}

// isPruned reports whether the search excluded sets of c without an evaluation.
func (y reason) isPruned(c *CELConstraint) bool {
	return c.cuts()+y.search.symmetry.skipped > 0
}

// isFirst reports whether the constraint covers the first request with devices, so that no other request comes before it.
func (y reason) isFirst(c *CELConstraint) bool {
	for i, requests := range y.search.Requests[:c.claimIndex+1] {
		if i == c.claimIndex {
			requests = requests[:c.first]
		}
		if len(requests) > 0 {
			return false
		}
	}
	return true
}

// hasCounters reports whether some devices consume shared counters. Then taking one device can make another device unavailable.
func (y reason) hasCounters() bool {
	for _, c := range y.search.Inventory.Candidates {
		if len(c.Device.ConsumesCounters) > 0 {
			return true
		}
	}
	return false
}
