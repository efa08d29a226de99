// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// ExactVictims is the largest number of victims whose sets are all searched.
const ExactVictims = 16

// UsualMaxQuestions is celset-scheduler's limit of questions for a node. A question is a call of Problem.Fits.
const UsualMaxQuestions = 5_000

// Problem is the input of a search.
type Problem struct {
	// Victims are all removable victims, the most important first. Among sets of equal cost, the search prefers kube-scheduler's
	// set, then a set that keeps earlier victims.
	Victims []Victim
	// Allowed is the number of pods that each disruption budget allows to remove.
	Allowed []int32
	// Fits reports whether everything fits if exactly these victims are removed, by position. It must be monotonic: if a set of
	// victims is sufficient, so is every superset.
	Fits func(ctx context.Context, removed bitset.Set) (bool, error)
	// Needs are necessary conditions for Fits. They are optional and save the search most of its questions.
	Needs []Need
	// Decisive are the positions of victims whose combinations may matter, sorted. If there are more than ExactVictims victims but
	// not more decisive ones, all sets of decisive victims are searched.
	Decisive []int
	// MaxQuestions limits the calls of Fits by the exact search. At the limit, the search returns the best set so far.
	MaxQuestions int
	// Over, if not nil, ends the search with its error. It is called often, because the exact search may run long without calling
	// Fits.
	Over func() error
}

// Need is a resource with a shortage.
type Need struct {
	// Missing is the least amount that must be freed.
	Missing int
	// Gives is the largest amount that each victim gives back.
	Gives []int
}

// Found is the result of a search.
type Found struct {
	// Removed are the positions of victims to remove. It is empty if no victim must be removed.
	Removed []int
	Cost    Cost
	// Questions counts the calls of Fits.
	Questions int
	// Exact is true if no other set of the searched victims costs less. Up to ExactVictims victims, all are searched.
	Exact bool
}

// search is the state of one search. Positions are indexes of victims.
type search struct {
	Problem
	ctx context.Context
	// monotonic is true if removing one more victim never reduces the violations.
	monotonic bool
	found     *Found
	// fitting and lacking hold the sets of earlier calls of Fits that returned true and false, respectively.
	fitting, lacking []bitset.Set
	questions        int
}

// Search returns a set of victims to remove so that Fits returns true. It returns nil if Fits returns false even with all
// victims removed. The error comes from Fits, Over or the context.
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

// searchSets searches the sets of all victims, or of the decisive ones.
func (s *search) searchSets(all bitset.Set) error {
	positions := s.Decisive
	if len(s.Victims) <= ExactVictims {
		positions = slices.Collect(all.All())
	}
	if len(positions) > ExactVictims || len(s.Victims) > ExactVictims && len(positions) == 0 {
		return nil
	}
	// Victims outside positions are decided as in kube-scheduler, while all victims in positions count as removed.
	others := slices.DeleteFunc(s.inOrderOfReprieve(), func(i int) bool { return slices.Contains(positions, i) })
	removed, err := s.reprieve(all, others)
	if err != nil {
		return err
	}
	for _, i := range positions {
		removed.Remove(i)
	}
	b := &branches{search: s, positions: positions, removed: removed, endAt: s.questions + s.MaxQuestions}
	exact, err := b.from(0)
	// The search may replace found, so Exact must be set after the search.
	s.found.Exact = exact
	return err
}

// fits calls Fits unless earlier answers imply the result.
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

// reprieve adds victims back one by one as long as Fits returns true, as kube-scheduler does. Victims whose removal violates a
// budget come first, then the others, each by importance.
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

// cost returns the cost of removing victims.
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

// keep stores a sufficient set of victims if it costs less than the incumbent.
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
