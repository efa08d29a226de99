// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"math"
)

// A search that goes from a better set to the next may come to a thousand of them, each a little
// better than the last. Where it does not end soon, it probes: it asks for a set that is better by
// far, halfway to what bounds say that no set exceeds. Either there is one, and it goes on from there,
// or there is none, and half of the values are out of the question.
//
// A probe is the same search with another floor. Its set is the first in order that is good enough, so
// when none is better, it is the first of the best. Where all sets were refused, the search for one
// above that floor has been done. Whatever else ends a probe says nothing, and what was left to
// do is done as if there had been none: errors are met where they would have been.

const (
	// probeAfter is how many steps a search takes before it probes. Most have ended by then.
	probeAfter = 256
	// probeSteps is how many steps one probe takes at most.
	probeSteps = 384
)

// interruption has a search give back what it took, as an error does. Nobody else is told.
type interruption string

func (i interruption) Error() string { return string(i) }

const (
	// errPaused is that a search has had the steps that it was given for now.
	errPaused interruption = "paused"
	// errReached is that a probe has found a set.
	errReached interruption = "reached"
)

// improve looks for better sets until there is none. The error is what ended that before.
func (s *search) improve() error {
	if !s.goal.mayProbe() {
		return s.climb()
	}
	s.pauseAfter(s.allocator.probeAfter)
	if err := s.climb(); !errors.Is(err, errPaused) {
		return err
	}
	isBest := s.probe(probeSteps)
	s.pauseAt = 0
	if isBest {
		return nil
	}
	return s.climb()
}

// climb goes from each better set to the next.
func (s *search) climb() error {
	_, err := s.nextRequest(0, 0)
	return err
}

func (s *search) pauseAfter(steps int64) { s.pauseAt = s.work.steps + steps }

// isPaused tells whether the search has had its steps for now.
func (s *search) isPaused() bool { return s.pauseAt > 0 && s.work.steps > s.pauseAt }

// probe raises the floor by probes, of so many steps each, until one has used them up. It is true if no
// set is better than the one that was found last.
func (s *search) probe(each int64) (isBest bool) {
	s.probing = true
	defer func() { s.probing = false }()
	aim := s.goal.target()
	// Nothing above the top is asked for.
	top := s.goal.most()
	// Above refused there is none. Searches for that came to their end.
	refused, isRefused := int64(0), false
	for wanted := top; aim.floor < top && top < math.MaxInt64; wanted = between(aim.floor, top) {
		best := aim.floor
		s.demand(wanted - 1)
		s.pauseAfter(each)
		err := s.climb()
		if errors.Is(err, errReached) {
			continue
		}
		s.demand(best)
		if err != nil {
			s.goalFails = false
			return false
		}
		top = wanted - 1
		refused, isRefused = top, true
	}
	return isRefused && aim.floor >= refused
}

// demand has the search look for a set whose value is above the floor.
func (s *search) demand(floor int64) {
	s.goal.target().floor = floor
	s.goal.raise()
}

// between is the value in the middle, above the lower one.
func between(low, high int64) int64 {
	// The difference may be more than an int64 has room for.
	distance := uint64(high) - uint64(low)
	return high - int64(distance/2)
}
