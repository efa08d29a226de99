// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/cel/device"
)

// A scheduler prepares claims in the background, and its allocators look up the result ([WithPrepared]).
type (
	// Preparer decodes claims, bounds the cost of their selectors and compiles their texts. It is safe for concurrent use.
	Preparer = definition.Preparer
	// PreparedClaim is a claim with decoded and compiled texts.
	PreparedClaim = definition.PreparedClaim
	// Prepared maps UIDs to prepared claims.
	Prepared = definition.Prepared
	// Content is the fingerprint of everything that is prepared for a claim, except its mistakes.
	Content = definition.Content
)

// MaxSetSize is the maximum size of a set.
const MaxSetSize = definition.MaxSetSize

// NewPreparer returns a Preparer that compiles constraints in the environment, and selectors with the features.
func NewPreparer(environment *device.Environment, features dracel.Features) (*Preparer, error) {
	return definition.NewPreparer(environment, features)
}

// NeedsPreparation reports whether the claim has texts to decode or compile, or refers to a constraint. If constraints is false,
// constraints and preferences are ignored.
func NeedsPreparation(claim *resourceapi.ResourceClaim, constraints bool) bool {
	return definition.NeedsPreparation(claim, constraints)
}

// ClassVersions returns the versions of the classes that a claim uses. version returns the version of a class, or "" if there is
// no such class. If no API server has stored the claim, the result includes its specification.
func ClassVersions(claim *resourceapi.ResourceClaim, version func(name string) string) string {
	return definition.ClassVersions(claim, version)
}

// VersionOf returns the version of a class, or its specification if it is not stored. It returns "" if err is not nil.
func VersionOf(class *resourceapi.DeviceClass, err error) string {
	return definition.VersionOf(class, err)
}

// ContentOf returns the [Content] of a claim. It is equal for two claims if everything that is prepared for them is equal. It
// returns false if the claim or a class has no fingerprint.
func ContentOf(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) (Content, bool) {
	return definition.ContentOf(claim, classes)
}
