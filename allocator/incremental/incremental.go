// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incremental asks about a set of devices that another program chooses, one device after the other. It is for
// allocators that have a search of their own, and constraints that are told of each device that the search takes and gives back:
//
//	constraints, err := incremental.Constraints(ctx, environment, claim, classes) // once a claim
//	set := constraints[0].Over(ctx, devices, requests, budget)                   // once a search
//	if !set.Add("gpus", 3) { /* try another device */ }
//	set.Remove("gpus", 3)                                                        // when the search goes back
//
// Add answers before the set is complete: false says that no set of the devices with those that were added satisfies the
// constraint. A search that takes devices in order and goes back where Add says so finds the set that it would find if it asked about
// complete sets only. How it is known is told by package bound.
package incremental

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// Constraint is a CEL device constraint of a claim. It is safe for concurrent use.
type Constraint struct {
	v1alpha1.Constraint
	expression *device.Expression
	// names are those of the claim's requests, of one with alternatives those of the alternatives.
	names []string
}

// Constraints compiles the CEL constraints of a claim, those that it refers to and those that hold because of its classes. The
// error says what is wrong with the claim, a class or an expression.
func Constraints(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) ([]*Constraint, error) {
	resolved, err := v1alpha1.Resolve(claim, classes)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range claim.Spec.Devices.Requests {
		for _, alternative := range r.FirstAvailable {
			names = append(names, r.Name+"/"+alternative.Name)
		}
		if len(r.FirstAvailable) == 0 {
			names = append(names, r.Name)
		}
	}
	var all []*Constraint
	for _, c := range resolved {
		expression, err := environment.Compile(ctx, c.Expression, c.Variables...)
		if err != nil {
			return nil, fmt.Errorf("claim %s, constraint %s (%s): %w", klog.KObj(claim), c.Name, c.Source, err)
		}
		all = append(all, &Constraint{c, expression, names})
	}
	return all, nil
}

// Request is one for which the search takes devices.
type Request struct {
	// Name is that of the request, or of the request and the alternative that is tried: "gpus/small".
	Name string
	// Count is how many devices it gets.
	Count int
}

// Covers reports whether the constraint is about the devices of a request.
func (c *Constraint) Covers(request string) bool {
	return len(c.Requests) == 0 || slices.ContainsFunc(c.Requests, func(name string) bool {
		return name == request || len(request) > len(name) && request[:len(name)+1] == name+"/"
	})
}

// Device is one that the search may take.
type Device struct {
	Driver string
	// Device is not modified, and must not be modified later.
	*resourceapi.Device
}

// Over begins with no devices. The devices are all that the search may take for any request; in calls they go by their
// position. The requests are those of the claim in its order, at least all that the constraint covers; for others Add is always true.
// Of a request with alternatives there is the one that is tried. Evaluations are charged to the budget, and end with the context.
// If something is wrong with the devices or the requests Add is always false, and [Set.Err] says what.
func (c *Constraint) Over(ctx context.Context, devices []Device, requests []Request, budget *cel.Budget) *Set {
	s := &Set{ctx: ctx, constraint: c, budget: budget, pool: newPool(len(devices))}
	if s.misuse = c.misuseOf(devices, requests); s.misuse != nil {
		s.fails(s.misuse)
		return s
	}
	for i, d := range devices {
		s.devices = append(s.devices, device.New(d.Driver, d.Device))
		s.pool.free.Add(i)
		if ptr.Deref(d.AllowMultipleAllocations, false) {
			s.pool.shared.Add(i)
		}
	}
	for _, r := range requests {
		if c.Covers(r.Name) {
			s.requests = append(s.requests, members{Request: r})
			s.size += min(r.Count, len(devices)+1)
		}
	}
	// Bounds are about sets in which a device is once.
	if s.size > 0 && (len(s.requests) == 1 || s.pool.shared.IsEmpty()) {
		if analysis := bound.Analyze(c.expression, s.size).Leading(s.devices); analysis != nil && analysis.Fits(len(devices)) {
			s.bounds = analysis.Tabulate(s.devices).NewBounds(ctx, budget)
		}
	}
	return s
}

// misuseOf is why there would be no right answers.
func (c *Constraint) misuseOf(devices []Device, requests []Request) error {
	if at := slices.IndexFunc(devices, func(d Device) bool { return d.Device == nil }); at >= 0 {
		return fmt.Errorf("device %d is nil", at)
	}
	seen := map[string]bool{}
	for _, r := range requests {
		name, _, _ := strings.Cut(r.Name, "/")
		switch {
		case r.Count < 0:
			return fmt.Errorf("request %s: %d devices", r.Name, r.Count)
		case !slices.Contains(c.names, r.Name):
			return fmt.Errorf("the claim has no request %s, it has %s", r.Name, strings.Join(c.names, ", "))
		case seen[name]:
			return fmt.Errorf("request %s is there twice: it gets the devices of one alternative", name)
		}
		seen[name] = true
	}
	for _, name := range c.names {
		if request, _, _ := strings.Cut(name, "/"); c.Covers(name) && !seen[request] {
			return fmt.Errorf("request %s is missing: the constraint is about its devices", request)
		}
	}
	return nil
}

// Set is a set of devices that grows and shrinks. It must not be used concurrently.
type Set struct {
	ctx        context.Context
	constraint *Constraint
	budget     *cel.Budget
	devices    []*device.Device
	// bounds are nil if nothing is known of sets that are not complete.
	bounds *bound.Bounds
	// requests are those covered, size is how many devices they get together, count how many they have.
	requests    []members
	size, count int
	pool        pool
	// refused counts what the bounds said no to.
	refused int
	// misuse is an error that nothing changes.
	misuse, err error
}

// pool has the devices by their positions.
type pool struct {
	// chosen are the devices in the set, free are all others. Several requests may get the same shared device.
	chosen, free, shared bitset.Set
}

func newPool(devices int) pool {
	return pool{chosen: bitset.New(devices), free: bitset.New(devices), shared: bitset.New(devices)}
}

// members are the devices of a request, in the order in which they were added.
type members struct {
	Request
	devices []int
}

func (s *Set) of(request string) *members {
	for i := range s.requests {
		if s.requests[i].Name == request {
			return &s.requests[i]
		}
	}
	return nil
}

// thoroughFrom is the number of refusals from which on more is done to find out what can't be.
const thoroughFrom = 3

// Add takes a device for a request. It is false, and the set as it was, if no set with the devices satisfies the constraint, if
// the request has its devices already, if the device is there and does not allow multiple allocations, or if the expression fails or may not be evaluated: then [Set.Err] says why, and the search is to end.
func (s *Set) Add(request string, position int) bool {
	if !s.constraint.Covers(request) {
		return true
	}
	r := s.of(request)
	if s.err != nil || r == nil || len(r.devices) >= r.Count || position < 0 || position >= len(s.devices) ||
		s.pool.chosen.Has(position) && (!s.pool.shared.Has(position) || slices.Contains(r.devices, position)) {
		return false
	}
	s.take(r, position)
	if s.mayBe() {
		return true
	}
	s.giveBack(r)
	return false
}

func (s *Set) take(r *members, position int) {
	r.devices = append(r.devices, position)
	s.count++
	s.pool.chosen.Add(position)
	s.pool.free.Remove(position)
}

// giveBack undoes take of the last device of the request.
func (s *Set) giveBack(r *members) {
	position := r.devices[len(r.devices)-1]
	r.devices = r.devices[:len(r.devices)-1]
	s.count--
	if slices.ContainsFunc(s.requests, func(other members) bool { return slices.Contains(other.devices, position) }) {
		return
	}
	s.pool.chosen.Remove(position)
	s.pool.free.Add(position)
}

// mayBe reports whether the set, or one with more devices, may satisfy the constraint.
func (s *Set) mayBe() bool {
	if s.ctx.Err() != nil {
		return s.fails(context.Cause(s.ctx))
	}
	if s.count == s.size {
		var all []*device.Device
		for _, r := range s.requests {
			for _, position := range r.devices {
				all = append(all, s.devices[position])
			}
		}
		satisfied, err := s.constraint.expression.Satisfied(s.ctx, all, s.budget)
		if err != nil {
			return s.fails(err)
		}
		return satisfied
	}
	if s.bounds == nil {
		return true
	}
	effort := bound.Quick
	if s.refused >= thoroughFrom {
		effort = bound.Thorough
	}
	domain := bitset.New(len(s.devices))
	domain.SetTo(s.pool.free)
	infeasible := s.bounds.Infeasible(bound.Partial{Chosen: s.pool.chosen, Domain: domain, Left: s.size - s.count}, effort)
	if err := s.bounds.Err(); err != nil {
		return s.fails(err)
	}
	if infeasible {
		s.refused++
	}
	return !infeasible
}

func (s *Set) fails(err error) bool {
	s.err = fmt.Errorf("constraint %s (%s): %w", s.constraint.Name, s.constraint.Source, err)
	return false
}

// Remove gives a device back that was added for the request, the last one first where it matters in which order they are.
func (s *Set) Remove(request string, position int) {
	r := s.of(request)
	if r == nil {
		return
	}
	at := slices.Index(r.devices, position)
	if at < 0 {
		return
	}
	r.devices = append(slices.Delete(r.devices, at, at+1), position)
	s.giveBack(r)
}

// Reset gives all devices back, and forgets an error of an evaluation.
func (s *Set) Reset() {
	for i := range s.requests {
		for len(s.requests[i].devices) > 0 {
			s.giveBack(&s.requests[i])
		}
	}
	if s.err = nil; s.misuse != nil {
		s.fails(s.misuse)
	}
}

// Err is why the expression has no value for a set, nil if it has: an evaluation failed, the budget is used up, or the context has
// ended. Or it is what is wrong with what [Constraint.Over] was given.
func (s *Set) Err() error { return s.err }
