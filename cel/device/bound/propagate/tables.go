// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device"
)

// Tables have what CEL says of devices, and what conditions derive from it.
type Tables struct {
	// Grown, if there is such, is told when the tables take more bytes of memory than before.
	// It must be set before the tables are used.
	Grown   func(bytes int)
	devices []*device.Device
	leaves  []leafTable
	// predicates are by predicate.index, derived is by derivation.index.
	predicates []predicateTable
	derived    []atomic.Value
	// ofPairs is the memory of the tables for pairs of devices, in bytes.
	ofPairs atomic.Int64
}

// Init prepares the tables for the devices.
func (t *Tables) Init(p *Problem, devices []*device.Device) {
	t.devices = devices
	t.leaves, t.predicates = make([]leafTable, len(p.Leaves)), make([]predicateTable, len(p.Predicates))
	t.derived = make([]atomic.Value, p.Derivations)
	for i := range p.Predicates {
		t.predicates[i].init(&p.Predicates[i], len(devices))
	}
}

// Size is about how many bytes of memory the tables take before they are filled, without the
// analysis and the devices. What they take later is said to Grown.
func (t *Tables) Size() int {
	bytes := int(unsafe.Sizeof(*t)) + len(t.leaves)*int(unsafe.Sizeof(leafTable{})) + len(t.derived)*int(unsafe.Sizeof(atomic.Value{}))
	for i := range t.predicates {
		bytes += t.predicates[i].size()
	}
	return bytes
}

func (t *Tables) grow(bytes int) {
	if t.Grown != nil && bytes > 0 {
		t.Grown(bytes)
	}
}
