// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import "github.com/celset/celset/cel/device/bound/propagate"

// Builder makes conditions of conditions and numbers: it finds the one that is propagated best. It is nil for conditions that
// belong to one search.
type Builder struct {
	// SetBytes is the number of devices in a set.
	SetSize int
	// Derivations counts the conditions that derive something from the values of all devices.
	Derivations int
}

// NewDerivation returns the place for what a condition derives.
func (b *Builder) NewDerivation() propagate.Derivation {
	if b == nil {
		return propagate.Owned()
	}
	b.Derivations++
	return propagate.Shared(b.Derivations - 1)
}
