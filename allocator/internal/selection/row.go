// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// Row remembers which devices pass the selectors of a request. A verdict is
// entered when the selectors were evaluated for the device.
type Row struct {
	// known and passes have a bit for each device. A bit of known is set after that of
	// passes.
	known, passes []atomic.Uint64
}

// NewRow has room for so many devices.
func NewRow(devices int) *Row {
	words := bitset.Words(devices)
	return &Row{known: make([]atomic.Uint64, words), passes: make([]atomic.Uint64, words)}
}

// Enter remembers a verdict.
func (r *Row) Enter(device int, passes bool) {
	if passes {
		r.passes[device/64].Or(1 << (device % 64))
	}
	r.known[device/64].Or(1 << (device % 64))
}

// Word has what is remembered of the devices from position 64*w on.
func (r *Row) Word(w int) (known, passes uint64) {
	known = r.known[w].Load()
	return known, r.passes[w].Load()
}

// Of is what is remembered of a device.
func (r *Row) Of(device int) Verdict {
	bit := uint64(1) << (device % 64)
	switch {
	case r.known[device/64].Load()&bit == 0:
		return Unknown
	case r.passes[device/64].Load()&bit != 0:
		return Selected
	default:
		return NotSelected
	}
}

// Bytes is about what it takes.
func (r *Row) Bytes() int { return int(unsafe.Sizeof(Row{})) + 16*len(r.known) }
