// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/inventory"
)

// solution is what a search took, in the order of claims, requests and devices.
type solution struct {
	// decisions has the requests that are being tried, one for each request of the
	// claims up to where the search stands.
	decisions []*request
	// choices are the devices.
	choices []choice
}

// choice is a device taken for a request.
type choice struct {
	claim   int
	request *request
	*inventory.Candidate
	availability.Reservation
}

// chosen returns the requests of a claim, of alternatives the one that was met. all are the
// requests of the claims.
func (s *solution) chosen(all [][]alternatives, claim int) []*request {
	start := 0
	for _, requests := range all[:claim] {
		start += len(requests)
	}
	return s.decisions[start : start+len(all[claim])]
}

// tried is what is being tried for a request of a claim, nil if nothing is.
func (s *solution) tried(all [][]alternatives, claim, request int) *request {
	for _, requests := range all[:claim] {
		request += len(requests)
	}
	if request >= len(s.decisions) {
		return nil
	}
	return s.decisions[request]
}

// choicesOf returns what was taken for one claim: the search takes one claim
// after the other.
func (s *solution) choicesOf(claim int) []choice {
	start := 0
	for start < len(s.choices) && s.choices[start].claim < claim {
		start++
	}
	end := start
	for end < len(s.choices) && s.choices[end].claim == claim {
		end++
	}
	return s.choices[start:end]
}

// found is the solution of the search, or the better one.
func (s *search) found() *solution {
	if s.preferred.incumbent != nil {
		return s.preferred.incumbent
	}
	return &s.solution
}
