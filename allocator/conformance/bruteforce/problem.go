// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A Problem holds the inputs of an allocation on a node.
type Problem struct {
	Features structured.Features
	Node     *v1.Node
	Slices   []*resourceapi.ResourceSlice
	Classes  []*resourceapi.DeviceClass
	Claims   []*resourceapi.ResourceClaim
	State    structured.AllocatedState
	// If Eager is true, Solve evaluates an expression as soon as its set is complete, instead of after all requests of the
	// claim have devices. The solution stays the same, but more sets are evaluated, which may cause errors.
	Eager bool
}

// A Solution is the result of Solve.
type Solution struct {
	// Found is true if a valid assignment exists.
	Found bool
	// Claims lists the devices of each claim, in the order of its requests.
	Claims [][]Pick
	// InvalidPools is true if the node has an invalid pool.
	InvalidPools bool
	// Evaluations is the number of evaluations of CEL constraints.
	Evaluations int
}

// A Pick is a device that was allocated to a request.
type Pick struct {
	Request, Driver, Pool, Device string
	AdminAccess                   bool
}

// EvaluationError is the error if the evaluation of a CEL constraint fails.
type EvaluationError struct {
	// Evaluation is the number of the failed evaluation, counted from 1.
	Evaluation int
	// AboutNode is true if the constraint's definition declares that a failure excludes only the node.
	AboutNode bool
	Err       error
}

func (e *EvaluationError) Error() string {
	return fmt.Sprintf("evaluation %d of a CEL constraint: %v", e.Evaluation, e.Err)
}

func (e *EvaluationError) Unwrap() error { return e.Err }

// A solver holds the state of one Solve call.
type solver struct {
	Problem
	pools    []*pool
	devices  []*device
	claims   []*claim
	chosen   [][]choice // one entry for each claim served so far
	solution Solution
}

// A choice is a device chosen for a request of the current claim.
type choice struct {
	request *request
	device  *device
}
