// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel"
)

// By KEP-5254 an expression that fails for some devices ends the attempt on all nodes. A definition may declare instead that a
// failure concerns only the node ([v1alpha1.FailurePolicyNodeDoesNotFit]). Then the first failure on a node excludes the node.
// The search does not skip the failing set, because another set might hide the mistake by chance.

// Error is the error of claims that don't fit on a node because a CEL constraint failed on devices of the node. The constraint
// declares that a failure concerns only the node. Error wraps [structured.ErrFailedAllocationOnNode].
type Error struct {
	// Claim is the claim with the constraint.
	Claim types.NamespacedName
	// Constraint is the name of the constraint as messages show it.
	Constraint string
	// Node is the name of the node. Devices lists the devices that the expression failed for.
	Node    string
	Devices []structured.DeviceID
	// Reason is [cel.ReasonRuntime], [cel.ReasonType], [cel.ReasonCostLimit] or [cel.ReasonMemory].
	Reason cel.Reason
	// Message is CEL's message in one line, with the position in the expression.
	Message string

	// claim is the index of Claim in the pod. positions holds the positions of Devices.
	claim     int
	positions []int
}

// Error returns a text without the names of the claim, the node and the devices, so that nodes with the same failure have the
// same text.
func (e *Error) Error() string {
	return fmt.Sprintf("constraint %s: the expression fails on devices of the node: %s", e.Constraint, e.Message)
}

// Detail returns the text of Error with the names of the claim, the node and the devices.
func (e *Error) Detail() string {
	ids := make([]string, len(e.Devices))
	for i, id := range e.Devices {
		ids[i] = id.String()
	}
	return fmt.Sprintf("claim %s, constraint %s, node %s, devices [%s]: the expression fails: %s",
		e.Claim, e.Constraint, e.Node, strings.Join(ids, ", "), e.Message)
}

// Unwrap returns [structured.ErrFailedAllocationOnNode].
func (e *Error) Unwrap() error { return structured.ErrFailedAllocationOnNode }

// isAboutDevices reports whether the evaluation would fail again for the same devices, regardless of earlier work. A failure
// because of time or a budget depends on earlier work. A failure because of the cost or memory of one evaluation depends only
// on the devices, such as the lengths of their attributes.
func isAboutDevices(reason cel.Reason) bool {
	switch reason {
	case cel.ReasonRuntime, cel.ReasonType, cel.ReasonCostLimit, cel.ReasonMemory:
		return true
	default:
		return false
	}
}

// OnNode returns a copy of the failure for another node: with the names of the claim, the node and its devices at the same
// positions.
func OnNode(e *Error, node *v1.Node, claims []*resourceapi.ResourceClaim, candidates []*inventory.Candidate) *Error {
	result := *e
	claim := claims[e.claim]
	result.Claim, result.Node = types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, node.Name
	result.Devices = make([]structured.DeviceID, len(e.positions))
	for i, position := range e.positions {
		result.Devices[i] = candidates[position].ID
	}
	return &result
}

// WithoutNode returns a copy of the failure that nodes can share: without the names of the claim, the node and the devices.
func WithoutNode(e *Error) *Error {
	return &Error{Constraint: e.Constraint, Reason: e.Reason, Message: e.Message, claim: e.claim, positions: e.positions}
}

// DoesNotFit returns an error that excludes only the node.
func DoesNotFit(reason string) error {
	return fmt.Errorf("%s%w", reason, structured.ErrFailedAllocationOnNode)
}

// NewError returns the failure of a constraint. claim is the index of the claim, and positions are the positions of the
// devices. NewError returns nil if the failure ends the attempt on all nodes.
func NewError(constraint string, failure *cel.Error, claim int, positions []int) *Error {
	if !isAboutDevices(failure.Reason) {
		return nil
	}
	message := failure.Message
	if failure.Line > 0 {
		message = fmt.Sprintf("line %d, column %d: %s", failure.Line, failure.Column, message)
	}
	return &Error{Constraint: constraint, Reason: failure.Reason, Message: message, claim: claim, positions: positions}
}
