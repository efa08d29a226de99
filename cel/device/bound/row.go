// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// row is a boolean leaf for all devices that one of its variables may stand for,
// the other variable, if any, standing for a certain device. Counting in a row is
// counting bits.
type row struct {
	// yes are the devices for which the leaf is surely true, maybe those for which it
	// may be, fails those for which it may fail.
	yes, maybe, fails Bits
}

// rowOf returns the row for a variable, the devices of the other variables being
// those in the slots. nil if the leaf does not speak of the variable.
func (t *table) rowOf(s *state, slot int) *row {
	outer := 0
	found := false
	for _, other := range t.leaf.slots {
		if other == slot {
			found = true
		} else {
			outer = s.slots[other] + 1
		}
	}
	if !found {
		return nil
	}
	key := rowKey{slot, outer}
	if known := t.rows[key]; known != nil {
		return known
	}
	r := t.newRow(s, slot)
	t.rows[key] = r
	return r
}

// rowKey has the device of the other variable plus one, zero if there is none.
type rowKey struct{ slot, outer int }

func (t *table) newRow(s *state, slot int) *row {
	n := len(t.devices)
	r := &row{yes: NewBits(n), maybe: NewBits(n), fails: NewBits(n)}
	before := s.slots[slot]
	for i := range n {
		s.slots[slot] = i
		outcome := t.at(s).outcome
		if outcome == True {
			r.yes.Add(i)
		}
		if outcome.may(True) {
			r.maybe.Add(i)
		}
		if outcome.may(Error) {
			r.fails.Add(i)
		}
	}
	s.slots[slot] = before
	return r
}

// tally counts the devices of the set for which the leaf holds.
func (r *row) tally(s *state) tally {
	others := s.Possible.Count() - s.Possible.countAnd(r.yes)
	return tally{
		fewest: s.Chosen.countAnd(r.yes) + max(0, s.Left-others),
		most:   s.Chosen.countAnd(r.maybe) + min(s.Left, s.Possible.countAnd(r.maybe)),
		fails:  s.Chosen.countAnd(r.fails) > 0 || s.Left > 0 && s.Possible.countAnd(r.fails) > 0,
	}
}
