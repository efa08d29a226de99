// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

// A stretch of a circle leaves out a part of the circle, which has no chosen device. The part lies in one of the gaps between
// chosen devices. If one gap only is large enough, what is outside of the gap is in the stretch, and so is what any part
// of the right size must leave.

// gap is what is between two chosen devices of a circle that follow each other, or between the only one and itself: the place
// after the first of them, and the number of devices.
type gap struct{ from, length int }

// narrowCircle drops what is too far from the chosen devices of a circle, of which the head is one, and requires what is in all
// stretches. It is false if there is none.
func (g *successors) narrowCircle(p path) bool {
	// Whole circles may stand in for devices of the stretch, so that more of the circle is left out.
	without := max(1, p.length-g.size)
	open, count := g.openGap(p, without)
	if count == 0 {
		return false
	}
	if count > 1 {
		return true
	}
	required := g.Borrow(g.all)
	defer g.GiveBack(required)
	required.Clear()
	d := p.head
	for place := range p.length {
		switch at := place - open.from; {
		case at < 0 || at >= open.length:
			if g.Domain.Has(d) {
				required.Add(d)
			}
		case at < without && open.length-1-at < without:
			g.keep.Remove(d)
		}
		d = g.next[d]
	}
	if !g.Hypothetical && !required.IsEmpty() {
		g.Require(required)
	}
	return true
}

// openGap counts the gaps that are large enough to have a number of devices left out, and returns the last of them.
func (g *successors) openGap(p path, without int) (open gap, count int) {
	current := gap{}
	end := func() {
		if current.length >= without {
			open, count = current, count+1
		}
	}
	d := p.head
	for place := range p.length {
		if g.Chosen.Has(d) {
			end()
			current = gap{from: place + 1}
		} else {
			current.length++
		}
		d = g.next[d]
	}
	end()
	return open, count
}
