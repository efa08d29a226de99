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

// reason explains why a search found nothing. The explanation is the first of these that applies:
//
//   - Requests for all devices need more than a claim can have.
//   - A request can't be met even by itself, because too few devices are free.
//   - No set satisfies a CEL constraint.
//   - Requests and constraints can't be met together.
//
// A constraint that refused no set is not named, because another part of the claims is the cause.
//
// The text contains no numbers that differ between nodes, because the scheduler writes a line for each distinct reason. Package
// explain has the numbers for one node.
//
// reason uses only results of the search and evaluates nothing: an expression that the search did not reach might fail.
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

// overLimit names the requests for all devices of a claim that needs more devices than a claim can have. It returns "" if there
// is no such claim. A claim that asks for too many devices on every node fails in the setup.
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

// prefix names the claim if the pod has several claims.
func (y reason) prefix(claim int) string {
	if len(y.search.Claims) == 1 {
		return ""
	}
	return fmt.Sprintf("claim %s: ", y.search.Claims[claim].Name)
}

// shortages lists what each alternative lacks. It returns "" if some alternative lacks nothing.
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

// shortage describes the devices that the request lacks even by itself. It returns "" if the request lacks none, or if the
// search has not examined enough devices.
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

// isRefused reports whether a constraint that compares attributes refuses the devices of a request for all devices, regardless of
// other requests.
func isRefused(r *Request) bool {
	return slices.ContainsFunc(r.bounding, func(b constraint.Bounding) bool {
		admitted := slices.DeleteFunc(slices.Clone(r.all), func(c *inventory.Candidate) bool { return !b.Admits(c) })
		return len(admitted) < len(r.all) || b.Most(admitted) < len(r.all)
	})
}

// free counts the devices that the request could get by itself. known is false if the search has not examined all devices for it.
func (y reason) free(r *Request) (free int, known bool) {
	s := y.search
	known = true
	for _, c := range s.Inventory.Candidates {
		switch {
		case s.Available.Allocated().Has(c.Position) && !r.AdminAccess():
		case r.group.selectors.Verdict(c.Position) == selection.Unknown:
			known = known && s.evaluator.NeverSelects(c)
		case r.group.selectors.Verdict(c.Position) == selection.Selected && s.Available.IsUsable(&r.Request, c):
			// The search has given back all devices, so this concerns only the device itself.
			if enough, err := s.Available.HasCapacity(&r.Request, c); err == nil && enough {
				free++
			}
		}
	}
	return free, known
}

// unsatisfied returns the reason for a constraint that no set satisfied.
func (y reason) unsatisfied(c *CELConstraint) string {
	if compared := comparedBeside(c); compared != "" {
		// The constraint saw only sets that the compared attributes allow.
		return fmt.Sprintf("no set of free devices satisfies constraint %s and %s together", c.Name, compared)
	}
	if len(c.covered) == 1 && len(c.covered[0]) == 1 {
		r := c.covered[0][0]
		free, known := y.free(r)
		sets := new(big.Int).Binomial(int64(free), int64(r.Count))
		// Either all sets were evaluated, or only this constraint kept the search from completing them.
		if known && (sets.Cmp(big.NewInt(c.rejected)) == 0 || y.isPruned(c) && len(r.constraints) == 1 && y.isFirst(c) && !y.hasCounters()) {
			if r.Count == 1 {
				return fmt.Sprintf("no free device satisfies constraint %s", c.Name)
			}
			return fmt.Sprintf("no set of %d free devices satisfies constraint %s", r.Count, c.Name)
		}
	}
	return fmt.Sprintf("no set of free devices satisfies constraint %s and the rest of the claim together", c.Name)
}

// maxCompared is the number of attribute constraints that a reason names.
const maxCompared = 3

// comparedBeside names the attribute constraints that cover devices of a CEL constraint.
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

// isPruned reports whether sets were excluded without an evaluation.
func (y reason) isPruned(c *CELConstraint) bool {
	return c.cuts()+y.search.symmetry.skipped > 0
}

// isFirst reports whether the constraint covers the first device that the search takes.
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

// hasCounters reports whether some devices share counters, so that one can make another unavailable.
func (y reason) hasCounters() bool {
	for _, c := range y.search.Inventory.Candidates {
		if len(c.Device.ConsumesCounters) > 0 {
			return true
		}
	}
	return false
}
