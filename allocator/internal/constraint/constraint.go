// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraint has the conditions on the devices of several requests. It knows those that
// compare an attribute, matchAttribute and distinctAttribute: they refuse a device that can't be
// part of any solution with those already taken, and tell how many devices of a list they would
// accept together at most.
//
// A [Constraint] is a stack of devices: whatever is added and removed again, it is as before.
package constraint

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

// Constraint is a condition on the devices of one or more requests of a claim.
// Only devices of covered requests are added. Devices are removed in the reverse
// order in which they were added, and after that the constraint is as it was
// before: the search relies on it.
type Constraint interface {
	// Add adds a device to the set if that may still lead to a set that satisfies
	// the constraint. If not, or after an error, the set is unchanged.
	Add(r *requests.Request, c *inventory.Candidate) (bool, error)
	// Remove undoes the last successful add.
	Remove(c *inventory.Candidate)
	// Len is the number of devices in it.
	Len() int
	// Rejection is the error of a request for all devices when Add refuses one of
	// them: there is no other choice. nil if another choice of earlier requests may
	// help.
	Rejection(r *requests.Request, c *inventory.Candidate) error
}

// Bounding is a constraint that knows devices which it will not accept
// any more.
type Bounding interface {
	// Admits tells whether the device, which has no derived attributes, can be
	// added: what Add would say now.
	Admits(c *inventory.Candidate) bool
	// Most returns how many of the devices, all of which are admitted, can be added
	// together at most, to those that are in it already.
	Most(devices []*inventory.Candidate) int
}

// Matching is a constraint for devices with a value in common.
type Matching interface {
	Bounding
	// AttributeName is that of the attribute compared.
	AttributeName() resourceapi.FullyQualifiedName
	// Values are those of a device without derived attributes.
	Values(c *inventory.Candidate) sets.Set[attribute.Scalar]
	// IsUndecided tells whether the value is still open: there is no device yet.
	IsUndecided() bool
}

// Covers tells whether the constraint is about devices of the request.
func Covers(api *resourceapi.DeviceConstraint, r *requests.Request) bool {
	return len(api.Requests) == 0 || r.IsNamed(api.Requests)
}

// Lookup finds attributes.
type Lookup interface {
	// Attribute is what a request sees of a device under a name, nil if there is nothing.
	Attribute(r *requests.Request, c *inventory.Candidate, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error)
}

// compared is the attribute that a constraint compares.
type compared struct {
	lookup Lookup
	name   resourceapi.FullyQualifiedName
}

// AttributeName is that of the attribute compared.
func (c *compared) AttributeName() resourceapi.FullyQualifiedName { return c.name }

func (c *compared) find(r *requests.Request, of *inventory.Candidate) (*resourceapi.DeviceAttribute, error) {
	return c.lookup.Attribute(r, of, c.name)
}

// Rejection: the devices are given and one of them does not match, so there is no
// solution, on any node where the devices are the same.
func (*compared) Rejection(r *requests.Request, c *inventory.Candidate) error {
	return r.Errorf("cannot add device %s because a claim constraint would not be satisfied", c.ID)
}
