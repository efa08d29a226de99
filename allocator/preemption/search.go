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

// UsualMaxQuestions is celset-scheduler's limit for the calls of Problem.Fits (questions) on a node.
const UsualMaxQuestions = 5_000

// Problem holds the inputs of a search.
type Problem struct {
	// Victims lists all removable victims, the most important first. Among sets of equal cost, the search prefers the set that
	// kube-scheduler would choose, then a set that keeps earlier victims.
	Victims []Victim
	// Allowed holds, for each disruption budget, the number of pods that may be removed.
	Allowed []int32
	// Fits reports whether the preempting pod fits if exactly the victims at the positions in removed are removed. It must be
	// monotonic: if a set of victims is sufficient, every larger set that contains it is sufficient, too.
	Fits func(ctx context.Context, removed bitset.Set) (bool, error)
	// Needs holds necessary conditions for Fits. They are optional, and save most calls of Fits.
	Needs []Need
	// Decisive lists the victims whose combinations may matter, as sorted positions. If there are more than ExactVictims
	// victims but at most ExactVictims decisive victims, the search covers all sets of decisive victims.
	Decisive []int
	// MaxQuestions limits the calls of Fits by the exact search. At the limit, the search returns the best set found so far.
	MaxQuestions int
	// Over ends the search if it returns an error. The search returns this error. Over is called often, because the exact
	// search may run long without calling Fits. Over may be nil.
	Over func() error
}

// Need describes a shortage of a resource.
type Need struct {
	// Missing is the least amount of the resource that must be freed.
	Missing int
	// Gives holds, for each victim, the largest amount that removing the victim can free.
	Gives []int
}

// Found is the result of a search.
type Found struct {
	// Removed lists the positions of the victims to remove. It is empty if no victim must be removed.
	Removed []int
	Cost    Cost
	// Questions is the number of calls of Fits.
	Questions int
	// Exact is true if no set that the search covers costs less. It covers all sets for at most ExactVictims victims.
	Exact bool
}

// search is the state of one search. A position is an index in Victims.
type search struct {
	Problem
	ctx context.Context
	// monotonic is true if removing a further victim never reduces the violations of disruption budgets.
	monotonic bool
	found     *Found
	// Fits returned true for the sets in fitting, and false for the sets in lacking.
	fitting, lacking []bitset.Set
	questions        int
}

// Search returns a set of victims to remove so that Fits returns true. It returns nil if Fits returns false even with all
// victims removed. An error comes from Fits, Over or the context.
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

// searchSets runs the exact search over the sets of all victims, or of the decisive victims.
func (s *search) searchSets(all bitset.Set) error {
	positions := s.Decisive
	if len(s.Victims) <= ExactVictims {
		positions = slices.Collect(all.All())
	}
	if len(positions) > ExactVictims || len(s.Victims) > ExactVictims && len(positions) == 0 {
		return nil
	}
	// Decide on the victims outside positions as kube-scheduler does, as if all victims in positions were removed.
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
	// from may replace s.found, so set Exact afterwards.
	s.found.Exact = exact
	return err
}

// fits returns the result of Fits. It calls Fits only if the results of earlier calls don't imply the result.
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

// reprieve keeps victims in order as long as Fits returns true, like kube-scheduler. It returns the removed victims.
// inOrderOfReprieve begins with victims whose removal violates a budget. The others follow. Both parts are sorted by
// importance.
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

// cost returns the cost of removing the given victims.
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

// keep makes a sufficient set of victims the incumbent if it costs less than the current incumbent.
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
