// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

// A stretch of a circle omits a part of the circle that has no chosen devices. So the omitted part lies in a gap between chosen
// devices. If only one gap is large enough, the stretch has all devices outside of this gap. It lacks every device that each
// possible omitted part covers.

// A gap is the run of devices between two neighbouring chosen devices of a circle, or from the only chosen device back to
// itself. from is the position after the first chosen device, and length is the number of devices in the gap.
type gap struct{ from, length int }

// narrowCircle removes and requires devices of a circle whose first device is chosen. It returns false if no stretch is
// possible.
func (g *successors) narrowCircle(p path) bool {
	// without is the minimum number of omitted devices. If the set also contains whole circles, the stretch is shorter and
	// omits more.
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

// openGap counts the gaps with at least without devices, and returns the last of these gaps.
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
