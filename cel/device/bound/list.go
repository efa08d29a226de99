// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// deviceList is a part whose value is a list of devices of the set: "devices", or
// what filters leave of it.
type deviceList interface {
	// membership reports whether a device is in the list if it is in the set: True,
	// False or an error of the filter, or several of these.
	membership(s *state, device int) Outcome
}

type allDevices struct{}

func (allDevices) membership(*state, int) Outcome { return True }

// filtered is list.filter(x, keeps).
type filtered struct {
	list  deviceList
	slot  int
	keeps condition
}

func (f filtered) membership(s *state, device int) Outcome {
	if !s.spend() {
		return Open
	}
	within := f.list.membership(s, device)
	if !within.may(True) {
		return within
	}
	before := s.slots[f.slot]
	s.slots[f.slot] = device
	result := within.choose(f.keeps.bound(s), False)
	s.slots[f.slot] = before
	return result
}

// counts is how many devices of a list.
type counts struct {
	// fewest and most of them that the list may have.
	fewest, most int
	// fails: the list may fail.
	fails bool
}

// count bounds the number of devices in the list for which the condition, if any,
// holds.
func count(s *state, list deviceList, slot int, holds condition) counts {
	if p, over, ok := predicateOver(list, slot, holds); ok {
		return p.row(s, over).counts(s)
	}
	var t counts
	for i := range s.Chosen.All() {
		o := memberThat(s, list, slot, holds, i)
		if o == True {
			t.fewest++
		}
		if o.may(True) {
			t.most++
		}
		t.fails = t.fails || o.may(Error)
	}
	// Of the possible devices as many as are left join the set: those that are not
	// counted first, or those that are.
	surely, maybe, others := 0, 0, 0
	for i := range s.Domain.All() {
		o := memberThat(s, list, slot, holds, i)
		if o == True {
			surely++
		} else {
			others++
		}
		if o.may(True) {
			maybe++
		}
		t.fails = t.fails || s.Left > 0 && o.may(Error)
	}
	t.fewest += max(0, s.Left-others)
	t.most += min(s.Left, maybe)
	return t
}

// predicateOver returns the predicate that decides which devices of the whole set are
// counted, and the slot of its variable that goes over them: as a filter, or as the
// condition.
func predicateOver(list deviceList, slot int, holds condition) (p *predicate, over int, ok bool) {
	if f, isFiltered := list.(filtered); isFiltered && holds == nil {
		list, slot, holds = f.list, f.slot, f.keeps
	}
	if _, all := list.(allDevices); !all {
		return nil, 0, false
	}
	p, ok = holds.(*predicate)
	return p, slot, ok && p.speaksOf(slot)
}

// memberThat is the membership of a device in list.filter(slot, holds).
func memberThat(s *state, list deviceList, slot int, holds condition, device int) Outcome {
	if holds == nil {
		return list.membership(s, device)
	}
	return filtered{list, slot, holds}.membership(s, device)
}

// size is list.size().
type size struct{ list deviceList }

func (n size) number(s *state) number {
	t := count(s, n.list, 0, nil)
	return number{least: int64(t.fewest), most: int64(t.most), fails: t.fails}
}
