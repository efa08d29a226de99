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

// By KEP-5254 an expression that fails on some devices ends the attempt on all nodes. A definition may declare instead that a
// failure only concerns the node ([v1alpha1.FailurePolicyNodeDoesNotFit]). Then the first failure on a node is its answer, like
// "does not fit". The search does not skip the failing set, because another set might hide the mistake by chance.

// Error is the error of claims that don't fit a node because a CEL constraint failed on its devices. The constraint declares
// that failures concern the node. Error wraps [structured.ErrFailedAllocationOnNode].
type Error struct {
	// Claim is the claim with the constraint.
	Claim types.NamespacedName
	// Constraint is the name of the constraint in messages.
	Constraint string
	// Node is the name of the node. Devices holds the devices that the expression failed on.
	Node    string
	Devices []structured.DeviceID
	// Reason is [cel.ReasonRuntime], [cel.ReasonType], [cel.ReasonCostLimit] or [cel.ReasonMemory].
	Reason cel.Reason
	// Message is the message of CEL with the position in the expression, in one line.
	Message string

	// claim and positions are the indices of Claim and Devices.
	claim     int
	positions []int
}

// Error returns a text that is equal for all nodes with such devices.
func (e *Error) Error() string {
	return fmt.Sprintf("constraint %s: the expression fails on devices of the node: %s", e.Constraint, e.Message)
}

// Detail returns a text that also names the node and devices.
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

// isAboutDevices reports whether an evaluation would fail again on the same devices, regardless of earlier work. Time and budgets
// depend on earlier work. The limits of cost and memory of one evaluation count as properties of the devices, because they depend
// on the lengths of attributes.
func isAboutDevices(reason cel.Reason) bool {
	switch reason {
	case cel.ReasonRuntime, cel.ReasonType, cel.ReasonCostLimit, cel.ReasonMemory:
		return true
	default:
		return false
	}
}

// OnNode returns the failure for another node: with its name, and with the names of its devices at the same positions.
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

// WithoutNode returns the part of a failure that all nodes with such devices share.
func WithoutNode(e *Error) *Error {
	return &Error{Constraint: e.Constraint, Reason: e.Reason, Message: e.Message, claim: e.claim, positions: e.positions}
}

// DoesNotFit returns an error that concerns the node and not the claims.
func DoesNotFit(reason string) error {
	return fmt.Errorf("%s%w", reason, structured.ErrFailedAllocationOnNode)
}

// NewError returns the failure of a constraint of the claim with this index on the devices at these positions. It returns nil if
// the failure ends the attempt.
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
