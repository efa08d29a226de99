// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/cel"
)

// search is the state of one Allocate call. One goroutine works with it.
type search struct {
	*Allocator
	ctx    context.Context
	logger klog.Logger
	node   *v1.Node
	pools  []*pool
	budget *cel.Budget

	claims []*resourceapi.ResourceClaim
	// requests has the requests of each claim, in order.
	requests       [][]*request
	celConstraints []*celConstraint

	// candidates are the devices of the pools in the order in which they are tried.
	candidates []*candidate
	// allocated tells for each position whether the device was in use before.
	allocated []bool
	// takenBy has for each position the claims that the search took the device for:
	// more than one only with admin access. It is a stack.
	takenBy [][]int
	// choices is what the search took, in order. When the search ends with success
	// it is the solution; when it ends otherwise it is empty.
	choices []choice

	steps int64
}

// choice is a device taken for a request.
type choice struct {
	claim   int
	request *request
	*candidate
}

// place is where the search stands: which device of which request of which claim
// is to be found next, and the first position at which it may be. Devices of one
// request are taken in ascending order, so that every set is tried once and not
// in all its orders.
type place struct {
	claim, request, device int
	from                   int
}

// newSearch checks claims and requests in their order and sets up the state.
func newSearch(ctx context.Context, a *Allocator, node *v1.Node, pools []*pool, claims []*resourceapi.ResourceClaim) (*search, error) {
	s := &search{
		Allocator:  a,
		ctx:        ctx,
		logger:     klog.FromContext(ctx),
		node:       node,
		pools:      pools,
		budget:     cel.NewBudget(a.costBudget),
		claims:     claims,
		candidates: listCandidates(pools),
	}
	s.takenBy = make([][]int, len(s.candidates))
	s.allocated = make([]bool, len(s.candidates))
	for i, c := range s.candidates {
		s.allocated[i] = a.state.AllocatedDevices.Has(c.id)
	}
	for _, claim := range claims {
		if err := s.addClaim(claim); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *search) addClaim(claim *resourceapi.ResourceClaim) error {
	requests := make([]*request, 0, len(claim.Spec.Devices.Requests))
	devices := 0
	for i := range claim.Spec.Devices.Requests {
		r, err := s.newRequest(claim, &claim.Spec.Devices.Requests[i])
		if err != nil {
			return err
		}
		// Compared before it is added: the sum of untrusted counts may overflow.
		if r.count > resourceapi.AllocationResultsMaxSize-devices {
			return r.errorf("adding %d devices exceeds the claim limit of %d, with %d already accounted for",
				r.count, resourceapi.AllocationResultsMaxSize, devices)
		}
		devices += r.count
		requests = append(requests, r)
	}
	s.requests = append(s.requests, requests)
	return s.addConstraints(claim, requests)
}

// run looks for the first solution.
func (s *search) run() (bool, error) {
	return s.next(place{})
}

// next finds the devices from p on. If it can't, everything that it took is
// given back.
func (s *search) next(p place) (bool, error) {
	s.steps++
	if err := cel.ContextError(s.ctx); err != nil {
		return false, fmt.Errorf("filter operation aborted: %w", err)
	}
	switch {
	case p.claim == len(s.claims):
		s.logger.V(6).Info("Allocation result found")
		return true, nil
	case p.request == len(s.requests[p.claim]):
		return s.next(place{claim: p.claim + 1})
	}
	r := s.requests[p.claim][p.request]
	switch {
	case r.wantsAll() && len(r.all) == 0:
		// "All" of nothing is not what anybody wants.
		return false, nil
	case p.device == r.count:
		return s.next(place{claim: p.claim, request: p.request + 1})
	case r.wantsAll():
		return s.takeNextOfAll(p, r)
	default:
		return s.takeAny(p, r)
	}
}

// takeNextOfAll takes the one device that is next. The order does not matter for
// "all", so there is no other choice.
func (s *search) takeNextOfAll(p place, r *request) (bool, error) {
	c := r.all[p.device]
	refusedBy, taken, err := s.take(p.claim, r, c)
	switch {
	case err != nil:
		return false, err
	case refusedBy != nil:
		return false, refusedBy.rejection(r, c)
	case !taken:
		return false, nil
	}
	return s.proceed(p, c)
}

// takeAny tries the devices from p.from on.
func (s *search) takeAny(p place, r *request) (bool, error) {
	for position := p.from; position < len(s.candidates); position++ {
		c := s.candidates[position]
		// In use or not is cheap to tell, and no selector is evaluated for a device
		// that can't be had.
		if s.inUse(p.claim, r, c) {
			continue
		}
		selected, err := s.isSelectable(r, c)
		if err != nil {
			return false, err
		}
		if !selected {
			continue
		}
		_, taken, err := s.take(p.claim, r, c)
		if err != nil {
			return false, err
		}
		if !taken {
			continue
		}
		if done, err := s.proceed(p, c); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// proceed goes on after c was taken at p, and gives it back if that fails.
func (s *search) proceed(p place, c *candidate) (bool, error) {
	done, err := s.next(place{claim: p.claim, request: p.request, device: p.device + 1, from: c.position + 1})
	if !done {
		s.giveBack()
	}
	return done, err
}

// inUse tells whether the device is not to be had for the request. Admin access
// shares devices with everybody, but a claim gets a device only once.
func (s *search) inUse(claim int, r *request, c *candidate) bool {
	if !r.adminAccess() {
		return s.allocated[c.position] || len(s.takenBy[c.position]) > 0
	}
	for _, by := range s.takenBy[c.position] {
		if by == claim {
			return true
		}
	}
	return false
}

// take takes a selectable device if nothing speaks against it. If a constraint
// does, it is returned. Unless the device was taken nothing has changed.
func (s *search) take(claim int, r *request, c *candidate) (refusedBy constraint, taken bool, err error) {
	if s.inUse(claim, r, c) || !s.isUsable(r, c) {
		return nil, false, nil
	}
	if err := s.refuseDevice(c); err != nil {
		return nil, false, err
	}
	for i, constraint := range r.constraints {
		added, err := constraint.add(c)
		if err != nil || !added {
			removeFrom(r.constraints[:i], c)
			return constraint, false, err
		}
	}
	s.takenBy[c.position] = append(s.takenBy[c.position], claim)
	s.choices = append(s.choices, choice{claim: claim, request: r, candidate: c})
	s.logger.V(7).Info("Device taken", "device", c.id, "request", r.name)
	return nil, true, nil
}

// giveBack undoes the last take.
func (s *search) giveBack() {
	last := s.choices[len(s.choices)-1]
	s.choices = s.choices[:len(s.choices)-1]
	s.takenBy[last.position] = s.takenBy[last.position][:len(s.takenBy[last.position])-1]
	removeFrom(last.request.constraints, last.candidate)
	s.logger.V(7).Info("Device given back", "device", last.id, "request", last.request.name)
}

func removeFrom(constraints []constraint, c *candidate) {
	for i := len(constraints) - 1; i >= 0; i-- {
		constraints[i].remove(c)
	}
}
