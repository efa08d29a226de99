// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/celset/celset/cel/device"
)

// hardware is the devices of a node as expressions see them: drivers, attributes and
// capacities in the order of the candidates, without the names of devices, pools and
// nodes. Nodes of one hardware type share it.
type hardware struct {
	cache *Cache
	// values are the devices, one value each, because identity is equality.
	values []*device.Device
}

// fingerprint stands for some content. Content is untrusted, so it is a cryptographic
// one.
type fingerprint [sha256.Size]byte

// hardwareOf finds the hardware of the candidates in the pools.
func (c *Cache) hardwareOf(pools []*pool, candidates []*candidate) *hardware {
	var all []byte
	for _, p := range pools {
		for _, slice := range p.slices {
			content := c.content(slice)
			all = append(all, content[:]...)
		}
	}
	return get(c.hardware, fingerprintOf(all), func() *hardware {
		h := &hardware{cache: c, values: make([]*device.Device, len(candidates))}
		for i, candidate := range candidates {
			h.values[i] = device.New(candidate.pool.driver, candidate.device)
		}
		return h
	})
}

// content is the fingerprint of what expressions see of a slice.
func (c *Cache) content(slice *resourceapi.ResourceSlice) fingerprint {
	return get(c.contents, slice, func() fingerprint {
		all := appendPart(nil, []byte(slice.Spec.Driver))
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			seen := resourceapi.Device{Attributes: d.Attributes, Capacity: d.Capacity, AllowMultipleAllocations: d.AllowMultipleAllocations}
			part, err := seen.Marshal()
			if err != nil {
				// Content that can't be written is like no other.
				part = fmt.Appendf(nil, "%s %s %s", slice.UID, slice.ResourceVersion, slice.Name)
			}
			all = appendPart(all, part)
		}
		return fingerprintOf(all)
	})
}

func fingerprintOf(content []byte) fingerprint { return sha256.Sum256(content) }

// appendPart appends such that different sequences of parts are different.
func appendPart(to, part []byte) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(part))), part...)
}

// selectionKey is everything that the verdicts of selectors depend on.
type selectionKey struct {
	hardware *hardware
	compiler *dracel.Cache
	// selectors are the texts, each with its length in front.
	selectors string
}

// selectionRow remembers which devices pass the selectors of a request. A verdict is
// entered when the selectors were evaluated for the device.
type selectionRow struct {
	// known and passes have a bit for each device. A bit of known is set after that of
	// passes.
	known, passes []atomic.Uint64
}

func newSelectionRow(devices int) *selectionRow {
	words := (devices + 63) / 64
	return &selectionRow{known: make([]atomic.Uint64, words), passes: make([]atomic.Uint64, words)}
}

func (r *selectionRow) enter(device int, passes bool) {
	if passes {
		r.passes[device/64].Or(1 << (device % 64))
	}
	r.known[device/64].Or(1 << (device % 64))
}

// word has what is remembered of the devices from position 64*w on.
func (r *selectionRow) word(w int) (known, passes uint64) {
	known = r.known[w].Load()
	return known, r.passes[w].Load()
}

// of is what is remembered of a device.
func (r *selectionRow) of(device int) selection {
	bit := uint64(1) << (device % 64)
	switch {
	case r.known[device/64].Load()&bit == 0:
		return selectionUnknown
	case r.passes[device/64].Load()&bit != 0:
		return selected
	default:
		return notSelected
	}
}
