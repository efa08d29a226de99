// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"sync/atomic"
	"unsafe"

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

// init prepares the tables for the devices.
func (t *tables) init(p *problem, devices []*device.Device) {
	t.devices = devices
	t.leaves, t.predicates = make([]leafTable, len(p.leaves)), make([]predicateTable, len(p.predicates))
	t.derived = make([]atomic.Value, p.derivations)
	for i := range p.predicates {
		t.predicates[i].init(&p.predicates[i], len(devices))
	}
}

// size is what the tables take before they are filled.
func (t *tables) size() int {
	bytes := int(unsafe.Sizeof(*t)) + len(t.leaves)*int(unsafe.Sizeof(leafTable{})) + len(t.derived)*int(unsafe.Sizeof(atomic.Value{}))
	for i := range t.predicates {
		bytes += t.predicates[i].size()
	}
	return bytes
}

func (t *tables) grow(bytes int) {
	if t.Grown != nil && bytes > 0 {
		t.Grown(bytes)
	}
}
