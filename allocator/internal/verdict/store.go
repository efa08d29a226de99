// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math/bits"
	"unsafe"
)

// numbers is a store in which a look-up takes some nanoseconds: a set is at the place that its
// number says, or at the first one after it that was free.
type numbers struct {
	limit int64
	grown func(bytes int)
	// places are a power of two, or none yet. taken is how many have a set.
	places []place
	taken  int
}

// place is free if the set is 0.
type place struct {
	set   uint64
	entry entry
}

const (
	placeBytes = int(unsafe.Sizeof(place{}))
	fewPlaces  = 64
)

// placeOf is where the set is, or where it would be. There is a free place always.
func (n *numbers) placeOf(set uint64) *place {
	// Multiplying spreads numbers that are close to each other.
	at := set * 0x9e3779b97f4a7c15 >> (64 - bits.Len(uint(len(n.places)-1)))
	for {
		p := &n.places[at]
		if p.set == set || p.set == 0 {
			return p
		}
		at = (at + 1) & uint64(len(n.places)-1)
	}
}

func (n *numbers) get(set uint64) entry {
	if n.places == nil {
		return 0
	}
	return n.placeOf(set).entry
}

func (n *numbers) put(set uint64, e entry) {
	if n.taken+1 > len(n.places)*3/4 {
		n.makeRoom()
	}
	p := n.placeOf(set)
	if p.set == 0 {
		n.taken++
	}
	*p = place{set, e}
}

// makeRoom doubles the places, or forgets all sets if there may not be as many.
func (n *numbers) makeRoom() {
	before := n.places
	want := max(fewPlaces, 2*len(before))
	if before != nil && int64(want*placeBytes) > n.limit {
		clear(before)
		n.taken = 0
		return
	}
	n.places = make([]place, want)
	for _, p := range before {
		if p.set != 0 {
			*n.placeOf(p.set) = p
		}
	}
	n.grown((want - len(before)) * placeBytes)
}

// texts is a store for sets that are too large to be numbers.
type texts struct {
	limit int64
	grown func(bytes int)
	found map[string]entry
	// taken are the bytes of the entries, counted those that grown was told of.
	taken, counted int64
}

const (
	// textBytes is what an entry takes beside the text of the set. Two places of three in a
	// map are in use.
	textBytes = 3 * int(unsafe.Sizeof("")+unsafe.Sizeof(open)+1) / 2
	// chunk is how many bytes are counted at once.
	chunk = 1 << 10
)

func (t *texts) get(set string) entry { return t.found[set] }

func (t *texts) put(set string, e entry) {
	if _, known := t.found[set]; !known {
		bytes := int64(textBytes + len(set))
		if t.taken+bytes > t.limit || t.found == nil {
			t.found = make(map[string]entry)
			t.taken = 0
		}
		if t.taken += bytes; t.taken > t.counted {
			t.counted += chunk
			t.grown(chunk)
		}
	}
	t.found[set] = e
}
