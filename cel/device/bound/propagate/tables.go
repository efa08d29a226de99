// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device"
)

// Tables hold the values and verdicts that CEL computed for the devices, and data that conditions derive from the values.
type Tables struct {
	// Grown is called with the number of added bytes when the tables grow. It may be nil. It must be set before the first
	// search.
	Grown   func(bytes int)
	devices []*device.Device
	leaves  []leafTable
	// predicates is indexed by Predicate.Index, and derived by Derivation.index.
	predicates []predicateTable
	derived    []atomic.Value
	// ofPairs is the memory in bytes of pairs, rows and classes, which are added on demand.
	ofPairs atomic.Int64
}

// Init allocates the tables for the devices. It does not call CEL.
func (t *Tables) Init(p *Problem, devices []*device.Device) {
	t.devices = devices
	t.leaves, t.predicates = make([]leafTable, len(p.Leaves)), make([]predicateTable, len(p.Predicates))
	t.derived = make([]atomic.Value, p.Derivations)
	for i := range p.Predicates {
		t.predicates[i].init(&p.Predicates[i], len(devices))
	}
}

// Size returns the approximate memory in bytes of the tables before they are filled, without the analysis and the devices.
// Grown gets the later growth.
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
