// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// ExactVictims is of how many victims all sets are looked at.
const ExactVictims = 16

// UsualMaxQuestions is what bounds the questions for a node in celset-scheduler.
const UsualMaxQuestions = 5_000

// Problem is who may go, and for what.
type Problem struct {
	// Victims are all who may be removed, the most important first. Of sets of the same cost that is
	// taken that kube-scheduler would find, or else one that keeps those that come first.
	Victims []Victim
	// Allowed is how many pods each disruption budget allows to be removed.
	Allowed []int32
	// Fits tells whether it fits when exactly these victims are removed, by position. If it fits it
	// fits with more of them removed, too.
	Fits func(ctx context.Context, removed bitset.Set) (bool, error)
	// Needs are what has to be freed, for all that is known. They save the search most of its
	// questions, and may be left out.
	Needs []Need
	// Decisive are the positions of victims that may matter in sets, in ascending order. If there are
	// more than ExactVictims victims, but not of these, all sets of these are looked at.
	Decisive []int
	// MaxQuestions bounds how often Fits is asked by the exact search. What is found by then is
	// taken.
	MaxQuestions int
	// Over, unless it is nil, ends the search with its error. Most of what the exact search does follows
	// from earlier answers, so that Fits is not asked for long.
	Over func() error
}

// Need is something of which so much more has to be free at least.
type Need struct {
	// Missing is how much that is.
	Missing int
	// Gives is how much of it each victim gives back at most.
	Gives []int
}

// Found is who is to be removed.
type Found struct {
	// Removed are positions of victims. Nobody is removed if it fits as it is.
	Removed []int
	Cost    Cost
	// Questions is how often Fits was asked.
	Questions int
	// Exact: no other sets of the victims that were searched cost less, which are all up to
	// ExactVictims.
	Exact bool
}

// search is one search. Positions are those of victims.
type search struct {
	Problem
	ctx context.Context
	// monotonic: with a victim more, budgets are not violated less.
	monotonic bool
	found     *Found
	// fitting and lacking are sets that were asked about.
	fitting, lacking []bitset.Set
	questions        int
}

// Search finds victims with whom removed it fits. It is nil if it would not fit without all of them.
// The error is one of Fits, or the context has ended.
func Search(ctx context.Context, problem Problem) (*Found, error) {
	s := &search{Problem: problem, ctx: ctx, monotonic: true}
	for _, victim := range problem.Victims {
		for _, pod := range victim {
			if len(pod.Budgets) > 1 {
				s.monotonic = false
			}
		}
	}
	all := bitset.New(len(problem.Victims))
	for i := range problem.Victims {
		all.Add(i)
	}
	if fits, err := s.fits(all); err != nil || !fits {
		return nil, err
	}
	removed, err := s.reprieve(all, s.inOrderOfReprieve())
	if err != nil {
		return nil, err
	}
	s.keep(removed)
	if err := s.searchSets(all); err != nil {
		return nil, err
	}
	s.found.Questions = s.questions
	return s.found, nil
}

// searchSets looks at sets of all victims, or of the decisive ones.
func (s *search) searchSets(all bitset.Set) error {
	positions := s.Decisive
	if len(s.Victims) <= ExactVictims {
		positions = slices.Collect(all.All())
	}
	if len(positions) > ExactVictims || len(s.Victims) > ExactVictims && len(positions) == 0 {
		return nil
	}
	// Who stays beside all of the others.
	others := slices.DeleteFunc(s.inOrderOfReprieve(), func(i int) bool { return slices.Contains(positions, i) })
	removed, err := s.reprieve(all, others)
	if err != nil {
		return err
	}
	for _, i := range positions {
		removed.Remove(i)
	}
	b := &branches{search: s, positions: positions, removed: removed, left: s.questions + s.MaxQuestions}
	exact, err := b.from(0)
	// Only now: what was found on the way is another object.
	s.found.Exact = exact
	return err
}

// fits asks, unless it follows from what was asked before.
func (s *search) fits(removed bitset.Set) (bool, error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	for _, known := range s.fitting {
		if known.IsWithin(removed) {
			return true, nil
		}
	}
	for _, known := range s.lacking {
		if removed.IsWithin(known) {
			return false, nil
		}
	}
	s.questions++
	fits, err := s.Fits(s.ctx, removed)
	if err != nil {
		return false, err
	}
	if fits {
		s.fitting = append(s.fitting, slices.Clone(removed))
	} else {
		s.lacking = append(s.lacking, slices.Clone(removed))
	}
	return fits, nil
}

// reprieve adds back whoever can stay, one after the other as kube-scheduler does: those first whose
// removal budgets don't allow, and of these and the others the most important first.
func (s *search) reprieve(removed bitset.Set, order []int) (bitset.Set, error) {
	removed = slices.Clone(removed)
	for _, i := range order {
		removed.Remove(i)
		fits, err := s.fits(removed)
		if err != nil {
			return nil, err
		}
		if !fits {
			removed.Add(i)
		}
	}
	return removed, nil
}

func (s *search) inOrderOfReprieve() []int {
	var violating, others []int
	before := 0
	for i := range s.Victims {
		if now := violations(s.Victims, func(j int) bool { return j <= i }, s.Allowed); now > before {
			violating, before = append(violating, i), now
		} else {
			others = append(others, i)
		}
	}
	return append(violating, others...)
}

// cost is that of removing victims.
func (s *search) cost(removed bitset.Set) Cost {
	cost := none
	for i, victim := range s.Victims {
		if removed.Has(i) {
			cost = cost.with(victim)
		}
	}
	cost.Violations = violations(s.Victims, removed.Has, s.Allowed)
	return cost
}

// keep keeps victims with which it fits, if they cost less than those that were found before.
func (s *search) keep(removed bitset.Set) {
	cost := s.cost(removed)
	if s.found != nil && cost.Compare(s.found.Cost) >= 0 {
		return
	}
	s.found = &Found{Cost: cost}
	for i := range s.Victims {
		if removed.Has(i) {
			s.found.Removed = append(s.found.Removed, i)
		}
	}
}
