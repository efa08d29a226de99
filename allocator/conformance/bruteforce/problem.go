// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

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
	// AboutNode is set if, by the definition, a failure only excludes the node.
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
