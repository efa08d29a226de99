// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/propagate"
)

// builder makes conditions of conditions and numbers: it finds the one that is propagated best. It is nil for conditions that
// belong to one search.
type builder struct {
	// SetBytes is the number of devices in a set.
	setSize int
	// derivations counts the conditions that derive something from the values of all devices.
	derivations int
}

// newDerivation returns the place for what a condition derives.
func (b *builder) newDerivation() propagate.Derivation {
	if b == nil {
		return propagate.Owned()
	}
	b.derivations++
	return propagate.Shared(b.derivations - 1)
}
