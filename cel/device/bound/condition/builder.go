// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bound/propagate"

// A Builder constructs conditions and numbers in the form that propagates best. Constructors get a nil Builder for a condition
// that only one search uses.
type Builder struct {
	// SetSize is the number of devices in a set.
	SetSize int
	// Derivations counts the conditions that derive data from the values of all devices.
	Derivations int
}

// NewDerivation returns the storage for the derived data of a condition.
func (b *Builder) NewDerivation() propagate.Derivation {
	if b == nil {
		return propagate.Owned()
	}
	b.Derivations++
	return propagate.Shared(b.Derivations - 1)
}
