// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"errors"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
)

// Optimization is the search of one call for the first solution, and then for better ones if there are preferences.
type Optimization struct {
	*search.Search
	// preferred holds the result of the searches for better solutions.
	preferred preferred
	// hits is 1 if the answer came from the cache.
	hits int64
}

// New sets up the search for a plan on a node. The first mistake in the claims is the error.
func New(ctx context.Context, on plan.OnNode) (*Optimization, error) {
	s, err := search.New(ctx, on, nil)
	return &Optimization{Search: s}, err
}

// run searches for the first solution, and for better ones if there are preferences.
func (s *Optimization) run() (bool, error) {
	found, err := s.Run()
	if !found || err != nil {
		return false, err
	}
	return true, s.prefer()
}

// found returns the best solution if there are preferences, and the first one otherwise.
func (s *Optimization) found() *search.Solution {
	if s.preferred.incumbent != nil {
		return s.preferred.incumbent
	}
	return &s.Solution
}

// Chosen returns the positions of the devices that Allocate chose, in the order of the search.
func (s *Optimization) Chosen() []int {
	choices := s.found().Choices
	positions := make([]int, len(choices))
	for i, c := range choices {
		positions[i] = c.Position
	}
	return positions
}

// preferred holds the best solution by the preferences, and how it was found.
type preferred struct {
	// incumbent is the best solution.
	incumbent *search.Solution
	outcome   answer.Outcome
	// values holds the values of the incumbent.
	values []answer.Value
	// spent counts the work of the searches for better solutions.
	spent answer.Stats
	// unrepeatable is not nil if the outcome depends on other work of the attempt. It is then the error that ended the search.
	unrepeatable error
}

// prefer improves the solution of the search by the preferences of the claims.
func (s *Optimization) prefer() error {
	p := &s.preferred
	p.incumbent = &s.Solution
	limits := budget.Budget{Cost: s.Planner.PreferenceCost, Steps: s.Planner.PreferenceSteps}
	var kept []search.Valued
	for claim := range s.Claims {
		definitions, err := s.Planner.Resolved(s.Claims[claim]).Definitions()
		if err != nil {
			return err
		}
		for i := range definitions.Preferences {
			preference := &definitions.Preferences[i]
			if !p.incumbent.IsAbout(claim, preference) {
				continue
			}
			at, weight := search.Valued{Claim: claim, Preference: i}, preference.StepWeight()
			n, err := newBetter(s.Ctx, s.OnNode, search.Improvement{
				Incumbent: p.incumbent, Earlier: kept, Next: at, Limits: budget.Budget{Cost: limits.Cost, Steps: limits.Steps / weight},
			})
			if over, is := errors.AsType[*budget.Error](err); is && over.Attempt {
				p.outcome, p.unrepeatable = answer.BestFound, err
				return nil
			}
			if err != nil {
				return err
			}
			value, ended, err := n.maximize()
			n.Work.Charge()
			p.incumbent, p.spent = n.Improves.Incumbent, answer.Sum(p.spent, statsOf(n))
			if value != nil {
				p.values = append(p.values, answer.Value{Claim: claim, Preference: i, Name: preference.Name, Value: *value, Losses: lossesOf(n.of, *value)})
			}
			switch {
			case err != nil:
				return err
			case ended != nil:
				p.outcome = answer.BestFound
				if over, is := errors.AsType[*budget.Error](ended); is && over.Attempt {
					p.unrepeatable = ended
				}
				return nil
			case value != nil:
				p.outcome = answer.Best
				kept = append(kept, search.Valued{Claim: claim, Preference: i, Value: *value})
			}
			limits.Cost -= min(limits.Cost, n.Work.Cost.Spent())
			limits.Steps -= min(limits.Steps, n.Work.Steps*weight)
		}
	}
	return nil
}

// statsOf returns the counts of a search for better solutions.
func statsOf(b *betterSearch) answer.Stats {
	stats := b.Stats()
	if f, is := b.of.(*fragmentation); is {
		stats.Cuts += f.cut
	}
	return stats
}
