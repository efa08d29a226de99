// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"sync/atomic"

	"github.com/celset/celset/cel/device"
)

// tables have what CEL says of devices, and what conditions derive from it.
type tables struct {
	// Grown, if there is such, is told when the tables take more bytes of memory than before.
	// It must be set before the tables are used.
	Grown   func(bytes int)
	devices []*device.Device
	leaves  []leafTable
	// predicates are by predicate.index, derived is by derivation.index.
	predicates []predicateTable
	derived    []atomic.Value
	// ofPairs is what they take for what is said of pairs.
	ofPairs atomic.Int64
}

func (t *tables) grow(bytes int) {
	if t.Grown != nil && bytes > 0 {
		t.Grown(bytes)
	}
}
