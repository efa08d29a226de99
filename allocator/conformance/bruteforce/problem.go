// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bruteforce is a second, naive implementation of the allocator's contract. It returns the first valid set of devices in
// the order of the claims, their requests and the devices.
//
//	solution, err := bruteforce.Solve(problem)
//
// It works in these steps:
//
//  1. Read the pools that the node sees, and the requests and constraints of the claims.
//  2. For the next claim, build every complete assignment of distinct devices to its requests, in order.
//  3. Skip an assignment if its devices are not available, or if it violates a constraint of the claim.
//  4. Continue with the next claim. The first assignment of the last claim completes the solution.
//
// It never prunes, undoes or caches, so it is hard to get wrong, and far too slow for anything but tests. It evaluates CEL
// constraints with plain cel-go over plain maps. It shares no code with the allocator.
//
// It has no error handling: requests must be valid and their selectors must not fail. Unsupported features must not be used:
// request policies, derived attributes, compatibility groups, and lists while the feature is off.
package bruteforce

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A Problem is the input of an allocation on a node.
type Problem struct {
	Features structured.Features
	Node     *v1.Node
	Slices   []*resourceapi.ResourceSlice
	Classes  []*resourceapi.DeviceClass
	Claims   []*resourceapi.ResourceClaim
	State    structured.AllocatedState
	// Eager evaluates an expression as soon as its devices are determined, not only when the whole claim is served. This changes no
	// solution, but evaluates more sets, which may cause errors.
	Eager bool
}

// A Solution is the result of Solve.
type Solution struct {
	// Found reports whether a valid assignment exists.
	Found bool
	// Claims are the devices of each claim, in the order of its requests.
	Claims [][]Pick
	// InvalidPools reports whether the node has contradictory pools.
	InvalidPools bool
	// Evaluations counts the evaluations of CEL constraints.
	Evaluations int
}

// A Pick is a device for a request.
type Pick struct {
	Request, Driver, Pool, Device string
	AdminAccess                   bool
}

// EvaluationError is the error of a CEL constraint.
type EvaluationError struct {
	// Evaluation is the number of the failed evaluation, starting with 1.
	Evaluation int
	// AboutNode is set if the definition says that a failure only excludes the node.
	AboutNode bool
	Err       error
}

func (e *EvaluationError) Error() string {
	return fmt.Sprintf("evaluation %d of a CEL constraint: %v", e.Evaluation, e.Err)
}

func (e *EvaluationError) Unwrap() error { return e.Err }

// A solver is the state of one Solve call.
type solver struct {
	Problem
	pools    []*pool
	devices  []*device
	claims   []*claim
	chosen   [][]choice // one entry for each claim served so far
	solution Solution
}

// A choice is a device for a request of the current claim.
type choice struct {
	request *request
	device  *device
}
