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

// Optimization runs the searches of an Allocate call: for the first solution and, if there are preferences, for better ones.
type Optimization struct {
	*search.Search
	// preferred holds the result of the searches for better solutions.
	preferred preferred
	// hits is 1 if the cache had the result, and 0 otherwise.
	hits int64
}

// New sets up the first search for a plan on a node. It returns the first error in the claims.
func New(ctx context.Context, on plan.OnNode) (*Optimization, error) {
	s, err := search.New(ctx, on, nil)
	return &Optimization{Search: s}, err
}

// run searches for the first solution, and for better solutions if there are preferences.
func (s *Optimization) run() (bool, error) {
	found, err := s.Run()
	if !found || err != nil {
		return false, err
	}
	return true, s.prefer()
}

// found returns the best solution if there are preferences, and the first solution otherwise.
func (s *Optimization) found() *search.Solution {
	if s.preferred.incumbent != nil {
		return s.preferred.incumbent
	}
	return &s.Solution
}

// Chosen returns the positions of the chosen devices, in the order of the search.
func (s *Optimization) Chosen() []int {
	choices := s.found().Choices
	positions := make([]int, len(choices))
	for i, c := range choices {
		positions[i] = c.Position
	}
	return positions
}

// preferred holds the best solution by the preferences, and whether it is proven to be the best.
type preferred struct {
	// incumbent is the best solution.
	incumbent *search.Solution
	outcome   answer.Outcome
	// values holds the value of each preference for the incumbent.
	values []answer.Value
	// spent is the work of the searches for better solutions.
	spent answer.Stats
	// unrepeatable is the error that ended the searches because of the attempt's budget, or nil. The result then depends on
	// other searches of the attempt and must not be cached.
	unrepeatable error
}

// prefer replaces the first solution by better solutions, by the preferences of the claims.
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

// statsOf returns the work of a search for better solutions.
func statsOf(b *betterSearch) answer.Stats {
	stats := b.Stats()
	if f, is := b.of.(*fragmentation); is {
		stats.Cuts += f.cut
	}
	return stats
}
