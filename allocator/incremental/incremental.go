// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incremental checks a CEL constraint while another program chooses devices one after the other. It is for allocators
// with their own search, which report each device that they take or give back:
//
//	constraints, err := incremental.Constraints(ctx, environment, claim, classes) // once a claim
//	set := constraints[0].Over(ctx, devices, requests, budget)                   // once a search
//	if !set.Add("gpus", 3) { /* try another device */ }
//	set.Remove("gpus", 3)                                                        // when the search goes back
//
// Add returns false before the set is complete if no complete set with the chosen devices satisfies the constraint. A search
// that takes devices in order and backtracks when Add returns false finds the same set as a search that evaluates only complete
// sets. Package bound explains why.
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
	// names lists the names of the claim's requests. A request with alternatives is replaced by the names of its alternatives.
	names []string
}

// Constraints compiles the CEL constraints of a claim and its classes. It fails if any of them is invalid.
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

// Request is a request that the search takes devices for.
type Request struct {
	// Name is the name of the request, or of the current alternative if the request has alternatives, such as "gpus/small".
	Name string
	// Count is the number of devices that the search takes for the request.
	Count int
}

// Covers reports whether the constraint covers the request. A constraint that names a request covers its alternatives, too. A
// constraint without names covers all requests.
func (c *Constraint) Covers(request string) bool {
	return len(c.Requests) == 0 || slices.ContainsFunc(c.Requests, func(name string) bool {
		return name == request || len(request) > len(name) && request[:len(name)+1] == name+"/"
	})
}

// Device is a device that the search may take.
type Device struct {
	Driver string
	// The package does not modify Device. The caller must not modify it either.
	*resourceapi.Device
}

// Over returns an empty set. devices holds all devices that the search may take for any request, and other methods identify a
// device by its index. requests holds the requests of the claim in order, and must include all requests that the constraint
// covers. For other requests Add always returns true. A request with alternatives is listed as its current alternative.
// Evaluations are charged to the budget and end with ctx. If devices or requests are invalid, Add always returns false and
// [Set.Err] returns the reason.
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
	// The bounds work only if no device can be in the set twice.
	if s.size > 0 && (len(s.requests) == 1 || s.pool.shared.IsEmpty()) {
		if analysis := bound.Analyze(c.expression, s.size).Leading(s.devices); analysis != nil && analysis.Fits(len(devices)) {
			s.bounds = analysis.Tabulate(s.devices).NewBounds(ctx, budget)
		}
	}
	return s
}

// misuseOf returns an error if the arguments of Over are invalid.
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
			return fmt.Errorf("request %s is given twice: give it the devices of one alternative only", name)
		}
		seen[name] = true
	}
	for _, name := range c.names {
		if request, _, _ := strings.Cut(name, "/"); c.Covers(name) && !seen[request] {
			return fmt.Errorf("request %s is missing: the constraint covers its devices", request)
		}
	}
	return nil
}

// Set is the set of devices that the search has chosen. Only one goroutine may use it.
type Set struct {
	ctx        context.Context
	constraint *Constraint
	budget     *cel.Budget
	devices    []*device.Device
	// bounds checks partial sets. It is nil if the expression can't be analyzed, or if a device may be in the set twice.
	bounds *bound.Bounds
	// requests holds the covered requests. size is the number of devices in a complete set, and count the current number.
	requests    []members
	size, count int
	pool        pool
	// refused is the number of devices that the bounds refused.
	refused int
	// misuse is the error about the arguments of Over. err is the error that Err returns. Reset sets err to misuse.
	misuse, err error
}

// pool holds sets of device indices.
type pool struct {
	// chosen holds the devices in the set, and free all other devices. shared holds devices that allow multiple allocations.
	chosen, free, shared bitset.Set
}

func newPool(devices int) pool {
	return pool{chosen: bitset.New(devices), free: bitset.New(devices), shared: bitset.New(devices)}
}

// members holds the devices chosen for a request, in the order of Add.
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

// thoroughFrom is the number of refused devices after which the bounds spend more work on a partial set ([bound.Thorough]).
const thoroughFrom = 3

// Add adds a device for a request. It returns false and changes nothing in these cases: no complete set with these devices
// satisfies the constraint, the request has all its devices, or the device is already in the set and does not allow multiple
// allocations. Add also returns false if the expression fails or must not be evaluated. Then [Set.Err] returns the reason.
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
	if s.mayBeSatisfied() {
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

// giveBack removes the last device of the request. The device stays in chosen if another request also has it.
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

// mayBeSatisfied reports whether some completion of the set may satisfy the constraint.
func (s *Set) mayBeSatisfied() bool {
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

// Remove removes a device of the request from the set. If the expression depends on the order of devices, the caller must
// remove the device that was added last.
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

// Reset removes all devices and clears the error of an evaluation.
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

// Err returns the error of an evaluation that failed or was not made, or of invalid arguments of [Constraint.Over], or nil.
func (s *Set) Err() error { return s.err }
