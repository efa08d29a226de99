// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// forAll is list.all(x, holds). One device for which it is false decides, whatever
// fails for others.
type forAll struct {
	list  deviceList
	slot  int
	holds condition
}

func (n forAll) bound(s *state) Outcome {
	result := n.ofChosen(s)
	switch {
	case s.Left == 0 || result == False:
	case s.shallow:
		result = result.and(Open)
	default:
		result = result.and(n.ofPossible(s))
	}
	// Where the list itself fails no verdict absorbs it.
	return result | failure(s, n.list)
}

func (n forAll) ofChosen(s *state) Outcome {
	result := True
	s.Chosen.each(func(i int) bool {
		result = result.and(n.of(s, i))
		return result != False
	})
	return result
}

// ofPossible is what the devices contribute that are yet to join the set. If too
// few are acceptable, each completion has one for which the condition is false.
func (n forAll) ofPossible(s *state) Outcome {
	acceptable := 0
	var any Outcome
	s.Possible.each(func(i int) bool {
		o := n.of(s, i)
		if o != False {
			acceptable++
		}
		any |= o
		return true
	})
	if acceptable < s.Left {
		return False
	}
	return any
}

// of is what the device contributes if it is in the set: true if it is not in the
// list.
func (n forAll) of(s *state, device int) Outcome {
	if !s.tables.spend() {
		return Open
	}
	within := n.list.membership(s, device) &^ Error
	if !within.may(True) {
		return True
	}
	before := s.slots[n.slot]
	s.slots[n.slot] = device
	holds := n.holds.bound(s)
	s.slots[n.slot] = before
	return within.choose(holds, True)
}

// failure is Error if the list may fail.
func failure(s *state, list deviceList) Outcome {
	if _, never := list.(allDevices); never {
		return 0
	}
	var result Outcome
	look := func(i int) bool {
		result |= list.membership(s, i) & Error
		return result == 0
	}
	s.Chosen.each(look)
	if s.Left > 0 {
		s.Possible.each(look)
	}
	return result
}

// exists is list.exists(x, holds): by de Morgan, which holds in CEL for errors
// too.
type exists struct {
	list  deviceList
	slot  int
	holds condition
}

func (n exists) bound(s *state) Outcome {
	return forAll{n.list, n.slot, not{n.holds}}.bound(s).not()
}

// existsOne is list.exists_one(x, holds). It fails if it fails for any device.
type existsOne struct {
	list  deviceList
	slot  int
	holds condition
}

func (n existsOne) bound(s *state) Outcome {
	t := count(s, n.list, n.slot, n.holds)
	return compare(equal, number{least: int64(t.fewest), most: int64(t.most), fails: t.fails}, exactly(1))
}
