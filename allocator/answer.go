// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
)

// Five thousand nodes of one hardware type, all of them free, have one answer to a
// claim: in positions of devices it is the same for all of them. So the answer to claims
// with CEL constraints is kept under all that it depends on. That is told only for
// devices which have nothing but attributes and capacities (isPlain): taints, counters,
// shares, binding conditions or node selection make each node its own case.

// answer looks the answer up, or searches.
func (s *search) answer(kept *plan.AnswerEntry) (found bool, reason string, err error) {
	if kept == nil {
		found, err := s.run()
		return found, s.reasonUnless(found || err != nil), err
	}
	known, hit, err := plan.Find(s.ctx, kept, func() (answer.Answer, error) {
		found, err := s.run()
		if failure, ok := errors.AsType[*answer.Error](err); ok {
			return answer.Answer{Failure: answer.WithoutNode(failure)}, nil
		}
		if err != nil {
			return answer.Answer{}, err
		}
		// An answer with an error is not kept.
		return s.describe(found), s.preferred.unrepeatable
	})
	switch {
	case err != nil && errors.Is(err, s.preferred.unrepeatable):
		err = nil
	case known.Failure != nil:
		err = s.FailureHere(known.Failure)
	case hit:
		s.replay(known)
	}
	if hit {
		s.hits++
	}
	return known.Found, known.Reason, err
}

func (s *search) reasonUnless(known bool) string {
	if known || !s.Planner.Reasons {
		return ""
	}
	return reason{s}.String()
}

// describe says how the search ended, in positions.
func (s *search) describe(found bool) answer.Answer {
	result := answer.Answer{Found: found, Reason: s.reasonUnless(found), Outcome: s.preferred.outcome, Values: s.preferred.values}
	if !found {
		result.Refusal = s.Planner.Refusal(result.Reason)
		return result
	}
	best := s.found()
	result.Decisions, result.Choices = make([]int, 0, len(best.decisions)), make([]answer.Choice, 0, len(best.choices))
	next := 0
	for _, requests := range s.requests {
		for range requests {
			result.Decisions = append(result.Decisions, best.decisions[next].alternative)
			next++
		}
	}
	for _, c := range best.choices {
		result.Choices = append(result.Choices, answer.Choice{Claim: c.claim, Request: c.request.Order, Position: c.Position})
	}
	return result
}

// replay makes the choices of an answer.
func (s *search) replay(known answer.Answer) {
	s.preferred.outcome, s.preferred.values = known.Outcome, known.Values
	if !known.Found {
		return
	}
	for _, requests := range s.requests {
		for _, all := range requests {
			s.solution.decisions = append(s.solution.decisions, all[known.Decisions[len(s.solution.decisions)]])
		}
	}
	first := make([]int, len(s.Claims))
	for i := 1; i < len(s.Claims); i++ {
		first[i] = first[i-1] + len(s.requests[i-1])
	}
	for _, c := range known.Choices {
		s.solution.choices = append(s.solution.choices, choice{claim: c.Claim, request: s.solution.decisions[first[c.Claim]+c.Request], Candidate: s.Inventory.Candidates[c.Position]})
	}
}

// stats counts what one search did, and those for better solutions that followed.
func (s *search) stats() answer.Stats {
	stats := answer.Stats{Steps: s.work.Steps, Cost: int64(min(s.work.Cost.Spent(), math.MaxInt64)), CacheHits: s.hits, AnswersKnown: s.hits}
	switch s.preferred.outcome {
	case answer.Best:
		stats.PreferencesBest = 1
	case answer.BestFound:
		stats.PreferencesBestFound = 1
	}
	if f, is := s.objective.(*fragmentation); is {
		stats.Cuts += f.cut
	}
	for _, constraint := range s.celConstraints {
		stats.Evaluations += constraint.evaluations
		stats.SetsAccepted += constraint.accepted
		stats.SetsProven += constraint.proven
		stats.CacheHits += constraint.hits
		stats.Cuts += constraint.cuts()
		for _, p := range constraint.pruners {
			if p.bounds != nil {
				stats.TableEvaluations += p.bounds.Evaluations()
				stats.TableBuilds += p.bounds.Builds()
			}
		}
	}
	return answer.Sum(stats, s.preferred.spent)
}

// allocate answers, and says so in results or as an error. kept is where the answer is kept, nil if it is not.
func (s *search) allocate(kept *plan.AnswerEntry) ([]resourceapi.AllocationResult, error) {
	found, reason, err := s.answer(kept)
	failure, isAboutNode := errors.AsType[*answer.Error](err)
	switch {
	case isAboutNode:
		return nil, s.Planner.Failure(failure)
	case err != nil:
		return nil, err
	case found:
		return s.results()
	case slices.ContainsFunc(s.Inventory.Pools, func(p *inventory.Pool) bool { return p.Invalid != "" }):
		return nil, answer.DoesNotFit("invalid resource pools were encountered")
	default:
		return nil, s.Planner.Refusal(reason)
	}
}
