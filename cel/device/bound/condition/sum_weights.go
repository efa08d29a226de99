// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// weights holds the amount (weight) that each tabulated device adds to a sum.
type weights struct {
	of []int64
	// known has the devices with an exact weight that is small enough for sums without overflow.
	known bitset.Set
	// order has the devices of known by ascending weight.
	order []int32
}

// running holds the devices that were chosen at the last call, and their sum.
type running struct {
	chosen bitset.Set
	sum    int64
}

// to updates the running sum from the previous chosen devices to the given ones, and returns the sum.
func (r *running) to(w *weights, chosen bitset.Set) int64 {
	if r.chosen == nil {
		r.chosen = bitset.New(len(w.of))
	}
	for word := range chosen {
		for changed := chosen[word] ^ r.chosen[word]; changed != 0; changed &= changed - 1 {
			i := word*64 + bits.TrailingZeros64(changed)
			if chosen.Has(i) {
				r.sum += w.of[i]
			} else {
				r.sum -= w.of[i]
			}
		}
	}
	r.chosen.SetTo(chosen)
	return r.sum
}

// weightsOf returns the weights and the running sum. The weights are nil if CEL could not evaluate the devices.
func weightsOf(s *propagate.State, terms []term, d propagate.Derivation) (*weights, *running) {
	w, ok := d.Derived(s).(*weights)
	if !ok {
		if w = newWeights(s, terms); w == nil {
			return nil, nil
		}
		d.Derive(s, w, int(unsafe.Sizeof(*w))+12*len(w.of)+propagate.SetBytes(len(w.of)))
	}
	memory := d.Memory(s)
	r, ok := (*memory).(*running)
	if !ok {
		r = &running{}
		*memory = r
	}
	return w, r
}

// newWeights computes the weights, or returns nil if the results are not sound.
func newWeights(s *propagate.State, terms []term) *weights {
	devices := s.Universe()
	w := &weights{of: make([]int64, devices), known: bitset.New(devices)}
	for i := range devices {
		known := true
		for _, t := range terms {
			added := t.of.(total).adds(s, i)
			product, ok := outcome.Multiply(t.factor, added.Least)
			if !added.IsExact() || added.Fails || !ok || outcome.IsFar(added) || outcome.IsFar(outcome.Exactly(product)) {
				known = false
				break
			}
			w.of[i] += product
		}
		if known && !outcome.IsFar(outcome.Exactly(w.of[i])) {
			w.known.Add(i)
			w.order = append(w.order, int32(i))
		}
	}
	if !s.IsSound() {
		return nil
	}
	slices.SortStableFunc(w.order, func(a, b int32) int { return cmp.Compare(w.of[a], w.of[b]) })
	return w
}

// isLocal reports whether the amount of a device depends only on the device.
func (n total) isLocal() bool { return isLocalList(n.List) && isLocalNumber(n.Value, n.Slot) }

func isLocalList(list DeviceList) bool {
	switch list := list.(type) {
	case AllDevices:
		return true
	case filtered:
		return isLocalList(list.list) && isLocalCondition(list.keeps, list.slot)
	default:
		return false
	}
}

func isLocalNumber(q propagate.Quantity, slot int) bool {
	switch q := q.(type) {
	case Constant:
		return true
	case propagate.Value:
		return len(q.Slots) == 0 || q.IsColumn(slot)
	case arithmetic:
		return isLocalNumber(q.left, slot) && isLocalNumber(q.right, slot)
	case conditionalNumber:
		return isLocalCondition(q.When, slot) && isLocalNumber(q.Yes, slot) && isLocalNumber(q.No, slot)
	default:
		return false
	}
}

func isLocalCondition(c propagate.Condition, slot int) bool {
	switch c := c.(type) {
	case verdict:
		return true
	case *propagate.Predicate:
		return len(c.Slots) == 1 && c.Slots[0] == slot
	case and:
		return isLocalCondition(c.left, slot) && isLocalCondition(c.right, slot)
	case or:
		return isLocalCondition(c.left, slot) && isLocalCondition(c.right, slot)
	case not:
		return isLocalCondition(c.operand, slot)
	default:
		return false
	}
}
