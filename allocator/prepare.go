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

// A scheduler prepares claims in the background, and its allocators look the result up ([WithPrepared]).
type (
	// Preparer decodes, judges and compiles claims. It is safe for concurrent use.
	Preparer = definition.Preparer
	// PreparedClaim has what a claim says, decoded and compiled.
	PreparedClaim = definition.PreparedClaim
	// Prepared has prepared claims by their UIDs.
	Prepared = definition.Prepared
	// Content stands for all that is prepared of a claim, besides what is wrong with it.
	Content = definition.Content
)

// MaxSetSize is the size of the largest set that is searched for.
const MaxSetSize = definition.MaxSetSize

// NewPreparer returns a Preparer of constraints in the environment and of selectors with the features.
func NewPreparer(environment *device.Environment, features dracel.Features) (*Preparer, error) {
	return definition.NewPreparer(environment, features)
}

// NeedsPreparation reports whether the claim has texts of its own to decode or to compile, or refers to a constraint.
// Without constraints, it ignores constraints and preferences.
func NeedsPreparation(claim *resourceapi.ResourceClaim, constraints bool) bool {
	return definition.NeedsPreparation(claim, constraints)
}

// ClassVersions returns the versions of the classes that a claim uses. version returns the version of a class by its name, "" if
// there is no such class. If no API server has stored the claim, its specification is part of the result.
func ClassVersions(claim *resourceapi.ResourceClaim, version func(name string) string) string {
	return definition.ClassVersions(claim, version)
}

// VersionOf returns the version of a class, "" if there is none. For a class that no API server has stored, it returns the
// specification.
func VersionOf(class *resourceapi.DeviceClass, err error) string {
	return definition.VersionOf(class, err)
}

// ContentOf returns the same for claims that ask for the same by equal classes. It is false if that can't be told.
func ContentOf(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) (Content, bool) {
	return definition.ContentOf(claim, classes)
}
