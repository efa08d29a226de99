// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"errors"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
)

// On five thousand idle nodes of one hardware type, a claim gets the devices at the same positions. So the cache stores the
// result for claims with CEL constraints by everything that it depends on, with positions instead of devices. All devices must
// be plain (isPlain), because taints, counters, shares, binding conditions and node selection make each node different.

// answer returns the cached result. If the result is not cached, it runs the searches.
func (s *Optimization) answer(kept *plan.AnswerEntry) (found bool, reason string, err error) {
	if kept == nil {
		found, err := s.run()
		return found, s.reasonUnless(found || err != nil), err
	}
	known, hit, err := plan.Find(s.Ctx, kept, func() (answer.Answer, error) {
		found, err := s.run()
		if failure, ok := errors.AsType[*answer.Error](err); ok {
			return answer.Answer{Failure: answer.WithoutNode(failure)}, nil
		}
		if err != nil {
			return answer.Answer{}, err
		}
		// The cache does not store a result if this function returns an error.
		return s.describe(found), s.preferred.unrepeatable
	})
	switch {
	case err != nil && errors.Is(err, s.preferred.unrepeatable):
		err = nil
	case known.Failure != nil:
		err = s.FailureHere(known.Failure)
	case hit:
		s.preferred.outcome, s.preferred.values = known.Outcome, known.Values
		if known.Found {
			s.Replay(known.Decisions, known.Choices)
		}
	}
	if hit {
		s.hits++
	}
	return known.Found, known.Reason, err
}

func (s *Optimization) reasonUnless(known bool) string {
	if known || !s.Planner.Reasons {
		return ""
	}
	return s.Reason()
}

// describe returns the result of the searches with positions instead of devices.
func (s *Optimization) describe(found bool) answer.Answer {
	result := answer.Answer{Found: found, Reason: s.reasonUnless(found), Outcome: s.preferred.outcome, Values: s.preferred.values}
	if !found {
		result.Refusal = s.Planner.Refusal(result.Reason)
		return result
	}
	result.Decisions, result.Choices = s.Positions(s.found())
	return result
}

// Details returns the statistics and the values of preferences.
func (s *Optimization) Details() answer.Details {
	return answer.Details{Stats: s.stats(), Outcome: s.preferred.outcome, Preferences: s.preferred.values}
}

// stats returns the work of the first search plus the work of the searches for better solutions.
func (s *Optimization) stats() answer.Stats {
	stats := s.Stats()
	stats.CacheHits, stats.AnswersKnown = stats.CacheHits+s.hits, s.hits
	switch s.preferred.outcome {
	case answer.Best:
		stats.PreferencesBest = 1
	case answer.BestFound:
		stats.PreferencesBestFound = 1
	}
	return answer.Sum(stats, s.preferred.spent)
}

// Allocate returns a result for each claim, or an error if the claims don't fit. kept is the cache entry, or nil.
func (s *Optimization) Allocate(kept *plan.AnswerEntry) ([]resourceapi.AllocationResult, error) {
	found, reason, err := s.answer(kept)
	if s.IsConstrained() {
		s.Work.Charge()
	}
	failure, isAboutNode := errors.AsType[*answer.Error](err)
	switch {
	case isAboutNode:
		return nil, s.Planner.Failure(failure)
	case err != nil:
		return nil, err
	case found:
		return s.Results(s.found())
	case slices.ContainsFunc(s.Inventory.Pools, func(p *inventory.Pool) bool { return p.Invalid != "" }):
		return nil, answer.DoesNotFit("invalid resource pools were encountered")
	default:
		return nil, s.Planner.Refusal(reason)
	}
}
