// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device"
)

// Tables hold results of CEL for the devices, and data that conditions derive from them.
type Tables struct {
	// Grown, unless nil, is called with the number of bytes when the tables grow. It must be set before the tables are used.
	Grown   func(bytes int)
	devices []*device.Device
	leaves  []leafTable
	// predicates are indexed by Predicate.Index, derived by Derivation.index.
	predicates []predicateTable
	derived    []atomic.Value
	// ofPairs is the memory of pairs, rows and classes, in bytes.
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

// Size returns the approximate memory of the empty tables in bytes, without the analysis and the devices. Later growth is
// reported to Grown.
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
