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

// A scheduler prepares claims in the background. Its allocators then use the prepared claims ([WithPrepared]).
type (
	// Preparer decodes claims, bounds the cost of selectors, and compiles selectors and expressions. It is concurrency-safe.
	Preparer = definition.Preparer
	// PreparedClaim is a claim with its decoded and compiled selectors, constraints and preferences.
	PreparedClaim = definition.PreparedClaim
	// Prepared maps UIDs to prepared claims.
	Prepared = definition.Prepared
	// Content is the fingerprint of everything that a Preparer compiles for a claim. It does not cover errors.
	Content = definition.Content
)

// MaxSetSize is the maximum number of devices in a set.
const MaxSetSize = definition.MaxSetSize

// NewPreparer returns a Preparer. It compiles constraints in the environment, and selectors with the given features.
func NewPreparer(environment *device.Environment, features dracel.Features) (*Preparer, error) {
	return definition.NewPreparer(environment, features)
}

// NeedsPreparation reports whether the claim has selectors or expressions to compile, or refers to a constraint. If constraints
// is false, constraints and preferences are ignored.
func NeedsPreparation(claim *resourceapi.ResourceClaim, constraints bool) bool {
	return definition.NeedsPreparation(claim, constraints)
}

// ClassVersions returns a key for the versions of the classes that a claim uses. version returns the version of a class, or ""
// if the class does not exist. If no API server has stored the claim, the key includes the claim's specification.
func ClassVersions(claim *resourceapi.ResourceClaim, version func(name string) string) string {
	return definition.ClassVersions(claim, version)
}

// VersionOf returns the version of a class, or its specification if no API server has stored it, or "" if err is not nil.
func VersionOf(class *resourceapi.DeviceClass, err error) string {
	return definition.VersionOf(class, err)
}

// ContentOf returns the [Content] of a claim. Two claims have equal contents if everything that a Preparer compiles for them is
// equal. It returns false if the claim or one of its classes has no fingerprint.
func ContentOf(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) (Content, bool) {
	return definition.ContentOf(claim, classes)
}
