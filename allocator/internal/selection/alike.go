// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/view"
)

// Most devices of a node look the same to selectors: a class asks for a driver, a request
// for a model or so much memory. A device is put together for upstream's evaluator with all
// that it has, which takes longer than to see that it is like the last one in everything
// that the selectors read. What they said of that one, they say of this one.

// judgement is what selectors said of a device.
type judgement struct {
	*inventory.Candidate
	passes bool
	// reads tells which attributes of devices of that driver the selectors read.
	reads func(resourceapi.QualifiedName) bool
}

// judge tells whether the device passes the selectors.
func (s *Selectors) judge(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if err := s.evaluator.Work.Cancelled(); err != nil {
		return false, err
	}
	if s.isLikeLast(c) {
		return s.last.passes, nil
	}
	passes, err := s.evaluate(r, c)
	if err != nil {
		return false, err
	}
	if s.last.Candidate == nil || s.last.Pool.Driver != c.Pool.Driver {
		s.last.reads = nil
	}
	s.last.Candidate, s.last.passes = c, passes
	return passes, nil
}

// isLikeLast tells whether selectors can't tell the device from the last one that they were
// evaluated for.
func (s *Selectors) isLikeLast(c *inventory.Candidate) bool {
	last := &s.last
	if s.evaluator.ReadSets == nil || last.Candidate == nil || last.Pool.Driver != c.Pool.Driver {
		return false
	}
	if last.SelectsNodes() || c.SelectsNodes() {
		// Which node it is matters as well.
		return false
	}
	if last.reads == nil {
		last.reads = s.evaluator.ReadSets.ReadBy(s.class, s.own).Reader(c.Pool.Driver)
	}
	return view.LookAlike(last.Device, c.Device, last.reads)
}
