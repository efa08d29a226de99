// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"

	"github.com/celset/celset/cel/memo"
)

// Five thousand nodes of one hardware type, all of them free, have one answer to a
// claim: in positions of devices it is the same for all of them. So the answer to claims
// with CEL constraints is kept under all that it depends on. That is told only for
// devices which have nothing but attributes and capacities (isPlain): taints, counters,
// shares, binding conditions or node selection make each node its own case.

// keptAnswer is how a search ended.
type keptAnswer struct {
	found bool
	// reason is why nothing was found, if reasons are wanted. refusal is the error that
	// says so.
	reason  string
	refusal error
	// failure is why the node was refused without that all sets were looked at. It is about no
	// node.
	failure *EvaluationError
	// decisions are the alternatives that were chosen, by their place among those of the
	// request, for all requests of all claims. choices are the devices.
	decisions []int
	choices   []placeOfChoice
	// outcome is empty without preferences, values are those of the choices.
	outcome PreferenceOutcome
	values  []PreferenceValue
}

// placeOfChoice is a choice without the objects of the node.
type placeOfChoice struct {
	claim, request, position int
}

// answerEntry has an answer or room for it.
type answerEntry = memo.Entry[answerKey, keptAnswer]

// answer looks the answer up, or searches.
func (s *search) answer(kept *answerEntry) (found bool, reason string, err error) {
	if kept == nil {
		found, err := s.run()
		return found, s.reasonUnless(found || err != nil), err
	}
	known, hit, err := find(s.ctx, kept, func() (keptAnswer, error) {
		found, err := s.run()
		if failure, ok := errors.AsType[*EvaluationError](err); ok {
			return keptAnswer{failure: failure.withoutNode()}, nil
		}
		if err != nil {
			return keptAnswer{}, err
		}
		// An answer with an error is not kept.
		return s.describe(found), s.preferred.unrepeatable
	})
	switch {
	case err != nil && errors.Is(err, s.preferred.unrepeatable):
		err = nil
	case known.failure != nil:
		err = known.failure.on(&s.onNode)
	case hit:
		s.replay(known)
	}
	if hit {
		s.hits++
	}
	return known.found, known.reason, err
}

func (s *search) reasonUnless(known bool) string {
	if known || !s.allocator.reasons {
		return ""
	}
	return reason{s}.String()
}

// describe says how the search ended, in positions.
func (s *search) describe(found bool) keptAnswer {
	result := keptAnswer{found: found, reason: s.reasonUnless(found), outcome: s.preferred.outcome, values: s.preferred.values}
	if !found {
		result.refusal = s.allocator.refusal(result.reason)
		return result
	}
	best := s.found()
	result.decisions, result.choices = make([]int, 0, len(best.decisions)), make([]placeOfChoice, 0, len(best.choices))
	next := 0
	for _, requests := range s.requests {
		for range requests {
			result.decisions = append(result.decisions, best.decisions[next].alternative)
			next++
		}
	}
	for _, c := range best.choices {
		result.choices = append(result.choices, placeOfChoice{c.claim, c.request.Order, c.Position})
	}
	return result
}

// replay makes the choices of an answer.
func (s *search) replay(known keptAnswer) {
	s.preferred.outcome, s.preferred.values = known.outcome, known.values
	if !known.found {
		return
	}
	for _, requests := range s.requests {
		for _, all := range requests {
			s.solution.decisions = append(s.solution.decisions, all[known.decisions[len(s.solution.decisions)]])
		}
	}
	first := make([]int, len(s.claims))
	for i := 1; i < len(s.claims); i++ {
		first[i] = first[i-1] + len(s.requests[i-1])
	}
	for _, c := range known.choices {
		s.solution.choices = append(s.solution.choices, choice{claim: c.claim, request: s.solution.decisions[first[c.claim]+c.request], Candidate: s.inventory.Candidates[c.position]})
	}
}
