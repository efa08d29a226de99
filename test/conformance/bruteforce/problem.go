// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Problem is what is to be allocated on which node.
type Problem struct {
	Features structured.Features
	Node     *v1.Node
	Slices   []*resourceapi.ResourceSlice
	Classes  []*resourceapi.DeviceClass
	Claims   []*resourceapi.ResourceClaim
	State    structured.AllocatedState
	// Eager asks an expression as soon as it is known which devices it is about, not
	// only when the whole claim is served. That changes no solution, but more sets
	// are asked about, which may be errors.
	Eager bool
}

// Solution is what Solve found.
type Solution struct {
	// Found is false if no assignment is right.
	Found bool
	// Claims has for each claim the devices it gets, in the order of its requests.
	Claims [][]Pick
	// InvalidPools tells whether the node has pools whose content is contradictory.
	InvalidPools bool
	// Evaluations is the number of times that a CEL constraint was evaluated.
	Evaluations int
}

// Pick is a device given to a request.
type Pick struct {
	Request, Driver, Pool, Device string
	AdminAccess                   bool
}

// EvaluationError is the error of a CEL constraint.
type EvaluationError struct {
	// Evaluation is 1 if the first evaluation of all failed.
	Evaluation int
	// AboutNode: the definition says that the node does not fit then.
	AboutNode bool
	Err       error
}

func (e *EvaluationError) Error() string {
	return fmt.Sprintf("evaluation %d of a CEL constraint: %v", e.Evaluation, e.Err)
}

func (e *EvaluationError) Unwrap() error { return e.Err }

// Solve tries all assignments until one is right. The error is an
// [*EvaluationError] if a CEL constraint failed on one of them; other errors say
// that the problem is none that Solve understands, or that a request for all
// devices meets a pool that can't be seen as a whole.
func Solve(p Problem) (Solution, error) {
	s := &solver{Problem: p}
	s.pools = visiblePools(&s.Problem)
	for _, pool := range s.pools {
		s.solution.InvalidPools = s.solution.InvalidPools || pool.invalid
		s.devices = append(s.devices, pool.devices...)
	}
	for _, claim := range p.Claims {
		prepared, err := s.prepare(claim)
		if err != nil {
			return s.solution, err
		}
		s.claims = append(s.claims, prepared)
	}
	found, err := s.tryClaim(0)
	s.solution.Found = found
	return s.solution, err
}

// solver is the state of one Solve call.
type solver struct {
	Problem
	pools    []*pool
	devices  []*device
	claims   []*claim
	chosen   [][]choice // one entry for each claim served so far
	solution Solution
}

// choice is a device given to a request of the claim that is being served.
type choice struct {
	request *request
	device  *device
}

// tryClaim serves the claims from the given one on, those before being served.
func (s *solver) tryClaim(index int) (bool, error) {
	if index == len(s.claims) {
		s.record()
		return true, nil
	}
	found := false
	err := s.claims[index].assignments(s.begun(s.claims[index]), func(assignment []choice) (bool, error) {
		if !s.available(assignment) {
			return true, nil
		}
		right, err := s.satisfies(s.claims[index], assignment)
		if err != nil || !right {
			return err == nil, err
		}
		s.chosen = append(s.chosen, assignment)
		found, err = s.tryClaim(index + 1)
		s.chosen = s.chosen[:index]
		return !found && err == nil, err
	})
	return found, err
}

// record keeps the first right assignment.
func (s *solver) record() {
	s.solution.Claims = make([][]Pick, 0, len(s.chosen))
	for _, assignment := range s.chosen {
		picks := make([]Pick, 0, len(assignment))
		for _, c := range assignment {
			picks = append(picks, Pick{
				Request: c.request.name, AdminAccess: c.request.adminAccess,
				Driver: c.device.id.Driver.String(), Pool: c.device.id.Pool.String(), Device: c.device.id.Device.String(),
			})
		}
		s.solution.Claims = append(s.solution.Claims, picks)
	}
}
