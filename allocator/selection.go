// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
)

// selection is what is known about a device and a request.
type selection int8

const (
	selectionUnknown selection = iota
	selected
	notSelected
)

// selections remember for each position whether the device passed the selectors, which
// does not depend on what else is allocated.
type selections struct{ known, passed bitset.Set }

func newSelections(devices int) selections {
	sets := bitset.NewList(2, devices)
	return selections{sets.At(0), sets.At(1)}
}

func (s selections) of(position int) selection {
	switch {
	case !s.known.Has(position):
		return selectionUnknown
	case s.passed.Has(position):
		return selected
	default:
		return notSelected
	}
}

func (s selections) enter(position int, passes bool) {
	s.known.Add(position)
	if passes {
		s.passed.Add(position)
	}
}

// isSelectable tells whether the device passes the selectors of the class and of
// the request and is for the node. Selectors are evaluated when the search
// reaches the device, not before: one that fails on a device which is not needed
// must not fail the allocation.
func (s *search) isSelectable(r *request, c *inventory.Candidate) (bool, error) {
	// Not remembered, because it is decided before anything can fail.
	if !s.allocator.features.DeviceBindingAndStatus && len(c.Device.BindingConditions) > 0 {
		return false, nil
	}
	if known := r.group.selections.of(c.Position); known != selectionUnknown {
		return known == selected, nil
	}
	// Only what the search comes to is looked up: reasons go by what it saw, not by what
	// others did.
	if r.group.known != nil {
		if known := r.group.known.of(c.Position); known != selectionUnknown {
			r.group.selections.enter(c.Position, known == selected)
			return known == selected, nil
		}
	}
	matches, err := s.judge(r, c)
	if err != nil {
		return false, err
	}
	r.group.selections.enter(c.Position, matches)
	if r.group.known != nil {
		r.group.known.enter(c.Position, matches)
	}
	return matches, nil
}

// selectionRowOf finds what is remembered for the selectors of a request. nil if the
// node plays a role, or a selector is none, or nobody is there to remember it for: to
// find out what view a node has takes as long as evaluating some selectors.
func (s *search) selectionRowOf(r *request) *selectionRow {
	if !s.allocator.sharesCache && !s.isConstrained() || s.inventory.DevicesSelectNodes() {
		return nil
	}
	key, ok := s.selectionKeyOf(r)
	if !ok {
		return nil
	}
	return s.allocator.cache.selections.Get(key, func() *selectionRow { return newSelectionRow(len(s.inventory.Candidates)) })
}

func (s *search) matchesSelectors(r *request, c *inventory.Candidate) (bool, error) {
	matches, err := s.evaluateSelectors(fmt.Sprintf("class %s", r.class.Name), r.class.Spec.Selectors, c)
	if err != nil || !matches {
		return false, err
	}
	matches, err = s.evaluateSelectors(fmt.Sprintf("claim %s", klog.KObj(r.claim)), r.spec.Selectors, c)
	if err != nil || !matches {
		return false, err
	}
	return c.IsFor(s.allocator.features, s.node)
}

// evaluateSelectors tells whether all selectors are true for the device. owner
// is the object that they are written in.
func (s *search) evaluateSelectors(owner string, selectors []resourceapi.DeviceSelector, c *inventory.Candidate) (bool, error) {
	for i, selector := range selectors {
		if selector.CEL == nil {
			return false, fmt.Errorf("%s: selector #%d: CEL expression empty (unsupported selector type?)", owner, i)
		}
		expression := s.allocator.selectors.GetOrCompile(selector.CEL.Expression)
		if expression.Error != nil {
			return false, fmt.Errorf("%s: selector #%d: CEL compile error: %w", owner, i, expression.Error)
		}
		matches, _, err := expression.DeviceMatches(s.ctx, celDevice(c))
		if err != nil {
			return false, fmt.Errorf("%s: selector #%d on device %s: CEL runtime error: %w", owner, i, c.ID, s.selectorError(err))
		}
		if !matches {
			return false, nil
		}
	}
	return true, nil
}

// selectorError adds the error of an ended context: an interrupted selector
// wraps its cause only.
func (s *search) selectorError(err error) error {
	if s.ctx.Err() != nil && !errors.Is(err, s.ctx.Err()) {
		return fmt.Errorf("%w: %w", s.ctx.Err(), err)
	}
	return dracel.EnhanceRuntimeError(err)
}
