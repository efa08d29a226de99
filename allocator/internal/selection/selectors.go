// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/cel/device/bitset"
)

// Verdict is what is known about a device and selectors.
type Verdict int8

const (
	// Unknown is said of a device for which they were not evaluated, or one of them failed.
	Unknown Verdict = iota
	// Selected devices pass all of them.
	Selected
	// NotSelected devices don't.
	NotSelected
)

// Selectors are those of a request and its class, and what they said of the devices of a node.
type Selectors struct {
	evaluator *Evaluator
	class     *resourceapi.DeviceClass
	own       []resourceapi.DeviceSelector
	// known and passed have a bit for each position: passed is within known.
	known, passed bitset.Set
	row           *Row
	last          judgement
}

// Init makes them those of a request on a node with so many devices. row is where verdicts are
// remembered for other searches, nil if they are not.
func (s *Selectors) Init(e *Evaluator, r *requests.Request, devices int, row *Row) {
	sets := bitset.NewList(2, devices)
	*s = Selectors{evaluator: e, class: r.Class, own: r.Spec.Selectors, known: sets.At(0), passed: sets.At(1), row: row}
}

// Verdict is what they said of the device in some position.
func (s *Selectors) Verdict(position int) Verdict {
	switch {
	case !s.known.Has(position):
		return Unknown
	case s.passed.Has(position):
		return Selected
	default:
		return NotSelected
	}
}

// Known has the devices for which there is a verdict, Passed those of them that are selected.
// Neither may be modified.
func (s *Selectors) Known() bitset.Set { return s.known }

// Passed has the devices that are selected.
func (s *Selectors) Passed() bitset.Set { return s.passed }

func (s *Selectors) enter(position int, passes bool) {
	s.known.Add(position)
	if passes {
		s.passed.Add(position)
	}
}

// Select tells whether the device passes the selectors and is for the node. An error names the
// claim of the request, which is one of those with these selectors.
func (s *Selectors) Select(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if s.evaluator.NeverSelects(c) {
		return false, nil
	}
	if known := s.Verdict(c.Position); known != Unknown {
		return known == Selected, nil
	}
	// Only what the search comes to is looked up: reasons go by what it saw, not by what
	// others did.
	if s.row != nil {
		if known := s.row.Of(c.Position); known != Unknown {
			s.enter(c.Position, known == Selected)
			return known == Selected, nil
		}
	}
	passes, err := s.judge(r, c)
	if err != nil {
		return false, err
	}
	s.enter(c.Position, passes)
	if s.row != nil {
		s.row.Enter(c.Position, passes)
	}
	return passes, nil
}

// Recall looks up what is remembered of ordinary devices that are not among others.
func (s *Selectors) Recall(ordinary, others bitset.Set) {
	if s.row == nil {
		return
	}
	for w, wanted := range ordinary {
		if others != nil {
			wanted &^= others[w]
		}
		known, passed := s.row.Word(w)
		s.known[w] |= known & wanted
		s.passed[w] |= passed & known & wanted
	}
}

func (s *Selectors) evaluate(r *requests.Request, c *inventory.Candidate) (bool, error) {
	s.evaluator.Evaluated++
	passes, err := s.evaluator.matches(fmt.Sprintf("class %s", s.class.Name), s.class.Spec.Selectors, c)
	if err != nil || !passes {
		return false, err
	}
	passes, err = s.evaluator.matches(fmt.Sprintf("claim %s", klog.KObj(r.Claim)), s.own, c)
	if err != nil || !passes {
		return false, err
	}
	return c.IsFor(s.evaluator.Features, s.evaluator.Node)
}
