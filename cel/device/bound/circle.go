// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// A stretch of a circle leaves out a part of it, with no chosen device in it. So that part
// lies in one of the gaps between chosen devices, and of the gaps that are large enough
// for it one stays open: what is outside of all of them is in the stretch, and where
// there is one such gap only, so is what any part of the right size must leave.

// gap is what is between two chosen devices of a circle that follow each other, or between
// the only one and itself: the place after the first of them, and the number of devices.
type gap struct{ from, length int }

// narrowCircle drops what is too far from the chosen devices of a circle, of which the head
// is one, and requires what is in all stretches. It is false if there is none.
func (c *chains) narrowCircle(p path) bool {
	without := max(1, p.length-c.size)
	open, count := c.openGap(p, without)
	if count == 0 {
		return false
	}
	if count > 1 {
		return true
	}
	required := c.borrow(c.all)
	defer c.giveBack(required)
	required.Clear()
	d := p.head
	for place := range p.length {
		switch at := place - open.from; {
		case at < 0 || at >= open.length:
			if c.Domain.Has(d) {
				required.Add(d)
			}
		case at < without && open.length-1-at < without:
			c.keep.Remove(d)
		}
		d = c.next[d]
	}
	if c.Left > 0 && !c.hypothetical && !required.IsEmpty() {
		c.require(required)
	}
	return true
}

// openGap counts the gaps that are large enough to have a number of devices left out, and
// returns the last of them.
func (c *chains) openGap(p path, without int) (open gap, count int) {
	current := gap{}
	end := func() {
		if current.length >= without {
			open, count = current, count+1
		}
	}
	d := p.head
	for place := range p.length {
		if c.Chosen.Has(d) {
			end()
			current = gap{from: place + 1}
		} else {
			current.length++
		}
		d = c.next[d]
	}
	end()
	return open, count
}
