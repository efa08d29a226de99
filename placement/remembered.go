// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/cluster/clock"
	"github.com/celset/celset/cel/memo"
)

// What Schedulers remember grows with Placements times clusters, and with the expressions of
// Placements, which anybody writes. So it has a bound in bytes: what is known of the Placement
// that was not decided for the longest time is forgotten first, and found out again when it is
// decided the next time.

// rememberedBytes is the bound for all Schedulers of a process. selectedBytes is the one for Placements
// without CEL, whose answers are found again about as fast as they are remembered: of many clusters and
// Placements they would drive out the others.
const (
	rememberedBytes = 256 << 20
	selectedBytes   = 64 << 20
)

var (
	remembered       = memo.New(rememberedBytes)
	selectedByLabels = memo.New(selectedBytes)
)

// What an answer takes besides itself, measured: a reason with the path of the selector, and
// the text of a failure.
const (
	reasonBytes  = 150
	failureBytes = 1000
)

// recall gets what is kept. The memory is locked.
func (m *memory) recall() {
	if kept := m.look(); kept != nil {
		m.known = *kept
	}
}

// look returns what is kept, nil if nothing is.
func (m *memory) look() *known {
	if m.kept == nil {
		return nil
	}
	if kept := m.kept.Look(); kept != nil {
		return kept
	}
	return m.keptByLabels.Look()
}

// release keeps what is known if there is room, and unlocks the memory.
func (m *memory) release() {
	defer m.mutex.Unlock()
	if m.kept != nil {
		now, to, other := m.known, m.kept, m.keptByLabels
		if !now.plan.timed {
			to, other = other, to
		}
		other.Forget()
		to.Keep(&now, now.size())
	}
	m.known = known{}
}

// recount says anew what it takes that is kept, after answers in it were replaced.
func (m *memory) recount(kept *known) {
	for _, slot := range []*memo.Slot[known]{m.kept, m.keptByLabels} {
		if slot.Look() == kept {
			slot.Keep(kept, kept.size())
		}
	}
}

// size is what is known of a Placement.
func (k *known) size() memo.Size {
	if k.measured != k.plan {
		k.parts, k.measured = k.plan.expressions(), k.plan
	}
	return memo.Size{Bytes: k.sizeOfAnswers(), Parts: k.parts}
}

func (k *known) sizeOfAnswers() int {
	bytes := cap(k.answers) * int(unsafe.Sizeof(answer{}))
	// What findings share is that of one of the last few.
	var reasons [4]Reason
	next := 0
	k.counts++
	for i := range k.answers {
		a := &k.answers[i]
		if a.counted == k.counts {
			continue
		}
		a.counted = k.counts
		bytes += int(unsafe.Sizeof(*a.finding)) + cap(a.reads)*int(unsafe.Sizeof(read{}))
		if a.match.holds != nil {
			bytes += int(unsafe.Sizeof(clock.Period{}))
		}
		if a.match.reason == nil || slices.Contains(reasons[:], a.match.reason) {
			continue
		}
		reasons[next%len(reasons)] = a.match.reason
		next++
		if _, is := a.match.reason.(*Failed); is {
			bytes += failureBytes
		} else {
			bytes += reasonBytes
		}
	}
	return bytes
}

// expressions are those of the selectors, compiled. Placements with the same ones share them.
func (p *plan) expressions() []memo.Part {
	selectors := slices.Clone(p.predicates)
	for _, g := range p.groups {
		selectors = append(selectors, g.selector)
	}
	var parts []memo.Part
	for _, selector := range selectors {
		if selector == nil {
			continue
		}
		for _, program := range selector.Programs() {
			parts = append(parts, memo.Part{Of: program, Bytes: program.Size()})
		}
	}
	return parts
}
