// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bruteforce is a second, dumb implementation of the promise that the
// allocator gives: of all sets of devices, in the order in which the claims, their
// requests and the devices stand, the first that is right.
//
//	solution, err := bruteforce.Solve(problem)
//
// It builds every complete assignment of distinct devices to the requests of a
// claim and only then asks whether it is right. There is no pruning, no undoing
// and no remembering, so there is little to get wrong, and it is far too slow for
// anything but tests. CEL constraints are evaluated with plain cel-go over plain
// maps. It shares no code with the allocator.
//
// It knows what a search means, not what an error means: requests must be valid
// and their selectors must not fail. What it does not know (request policies,
// derived attributes, compatibility groups, lists while the feature is off) must
// not be used.
package bruteforce

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Problem is what is to be allocated on which node.
type Problem struct {
	Features structured.Features
	Node     *v1.Node
	Slices   []*resourceapi.ResourceSlice
	Classes  []*resourceapi.DeviceClass
	Claims   []*resourceapi.ResourceClaim
	State    structured.AllocatedState
	// Eager asks an expression as soon as it is known which devices it is about, not
	// only when the whole claim is served. That changes no solution, but more sets
	// are asked about, which may be errors.
	Eager bool
}

// Solution is what Solve found.
type Solution struct {
	// Found is false if no assignment is right.
	Found bool
	// Claims has for each claim the devices it gets, in the order of its requests.
	Claims [][]Pick
	// InvalidPools tells whether the node has pools whose content is contradictory.
	InvalidPools bool
	// Evaluations is the number of times that a CEL constraint was evaluated.
	Evaluations int
}

// Pick is a device given to a request.
type Pick struct {
	Request, Driver, Pool, Device string
	AdminAccess                   bool
}

// EvaluationError is the error of a CEL constraint.
type EvaluationError struct {
	// Evaluation is 1 if the first evaluation of all failed.
	Evaluation int
	// AboutNode: the definition says that the node does not fit then.
	AboutNode bool
	Err       error
}

func (e *EvaluationError) Error() string {
	return fmt.Sprintf("evaluation %d of a CEL constraint: %v", e.Evaluation, e.Err)
}

func (e *EvaluationError) Unwrap() error { return e.Err }

// Solve tries all assignments until one is right. The error is an
// [*EvaluationError] if a CEL constraint failed on one of them; other errors say
// that the problem is none that Solve understands, or that a request for all
// devices meets a pool that can't be seen as a whole, which is about the node.
func Solve(p Problem) (Solution, error) {
	s := &solver{Problem: p}
	s.pools = visiblePools(&s.Problem)
	for _, pool := range s.pools {
		s.solution.InvalidPools = s.solution.InvalidPools || pool.invalid
		s.devices = append(s.devices, pool.devices...)
	}
	for _, claim := range p.Claims {
		prepared, err := s.prepare(claim)
		if err != nil {
			return s.solution, err
		}
		s.claims = append(s.claims, prepared)
	}
	found, err := s.tryClaim(0)
	s.solution.Found = found
	return s.solution, err
}

// solver is the state of one Solve call.
type solver struct {
	Problem
	pools    []*pool
	devices  []*device
	claims   []*claim
	chosen   [][]choice // one entry for each claim served so far
	solution Solution
}

// choice is a device given to a request of the claim that is being served.
type choice struct {
	request *request
	device  *device
}

// tryClaim serves the claims from the given one on, those before being served.
func (s *solver) tryClaim(index int) (bool, error) {
	if index == len(s.claims) {
		s.record()
		return true, nil
	}
	found := false
	err := s.claims[index].assignments(s.begun(s.claims[index]), func(assignment []choice) (bool, error) {
		if !s.available(assignment) {
			return true, nil
		}
		right, err := s.satisfies(s.claims[index], assignment)
		if err != nil || !right {
			return err == nil, err
		}
		s.chosen = append(s.chosen, assignment)
		found, err = s.tryClaim(index + 1)
		s.chosen = s.chosen[:index]
		return !found && err == nil, err
	})
	return found, err
}

// record keeps the first right assignment.
func (s *solver) record() {
	s.solution.Claims = make([][]Pick, 0, len(s.chosen))
	for _, assignment := range s.chosen {
		picks := make([]Pick, 0, len(assignment))
		for _, c := range assignment {
			picks = append(picks, Pick{
				Request: c.request.name, AdminAccess: c.request.adminAccess,
				Driver: c.device.id.Driver.String(), Pool: c.device.id.Pool.String(), Device: c.device.id.Device.String(),
			})
		}
		s.solution.Claims = append(s.solution.Claims, picks)
	}
}

// assignments visits all ways to give every request of the claim, or one of its
// alternatives, the number of devices it wants, in lexical order: requests as they
// stand, alternatives as they stand, and for one request the devices in ascending
// order. No device stands twice, unless it may be shared: then it may for several
// requests. It stops when visit returns false or an error. The assignment may be
// kept.
//
// Before that, begun sees each assignment to the first requests.
func (c *claim) assignments(begun func(stage) error, visit func([]choice) (bool, error)) error {
	_, err := c.extend(nil, 0, begun, visit)
	return err
}

func (c *claim) extend(chosen []choice, index int, begun func(stage) error, visit func([]choice) (bool, error)) (goOn bool, err error) {
	if index == len(c.requests) {
		return visit(slices.Clone(chosen))
	}
	for _, r := range c.requests[index] {
		if err := begun(stage{chosen: chosen, served: index + 1, last: r}); err != nil {
			return false, err
		}
		goOn, err = r.subsets(func(devices []*device) (bool, error) {
			longer := slices.Clone(chosen)
			for _, d := range devices {
				if !d.shared && slices.ContainsFunc(longer, func(other choice) bool { return other.device == d }) {
					return true, nil
				}
				longer = append(longer, choice{request: r, device: d})
			}
			if err := begun(stage{chosen: longer, served: index + 1, last: r, complete: true}); err != nil {
				return false, err
			}
			return c.extend(longer, index+1, begun, visit)
		})
		if err != nil || !goOn {
			return false, err
		}
	}
	return true, nil
}

// subsets visits the sets of devices that the request could get if it were alone.
// A request for all devices has one, if there are any and all may be used.
func (r *request) subsets(visit func([]*device) (bool, error)) (goOn bool, err error) {
	if r.all && (r.count == 0 || slices.Contains(r.usable, false)) {
		return true, nil
	}
	return r.combinations(nil, 0, visit)
}

func (r *request) combinations(chosen []*device, from int, visit func([]*device) (bool, error)) (goOn bool, err error) {
	if len(chosen) == r.count {
		return visit(chosen)
	}
	for i := from; i < len(r.selected); i++ {
		if !r.usable[i] {
			continue
		}
		goOn, err := r.combinations(append(slices.Clone(chosen), r.selected[i]), i+1, visit)
		if err != nil || !goOn {
			return false, err
		}
	}
	return true, nil
}

// available tells whether the devices of an assignment can be had beside those of
// earlier claims and what was allocated before.
func (s *solver) available(assignment []choice) bool {
	together := slices.Concat(slices.Concat(s.chosen...), assignment)
	return s.free(assignment) && s.haveCapacity(together) && s.haveCounters(together)
}

// free tells whether nobody else has the devices: neither anybody before, be it as
// shares from when they were shared, nor, in this solution, an earlier claim. Admin
// access does not care.
func (s *solver) free(assignment []choice) bool {
	taken := sets.New(s.State.AllocatedDevices.UnsortedList()...)
	for _, earlier := range s.chosen {
		for _, c := range earlier {
			if !c.device.shared {
				taken.Insert(c.device.id)
			}
		}
	}
	for _, c := range assignment {
		if (taken.Has(c.device.id) || !c.device.shared && s.wasShared(c.device)) && !c.request.adminAccess {
			return false
		}
	}
	return true
}

// wanted is what a request consumes of a capacity: all, unless it says less.
func (r *request) wanted(name resourceapi.QualifiedName, capacity resourceapi.DeviceCapacity) resource.Quantity {
	if amount, found := r.capacity[name]; found {
		return amount
	}
	return capacity.Value
}

// isLargeEnough tells whether the device has the capacities that are requested, if
// nobody else used it.
func (s *solver) isLargeEnough(r *request, d *device) bool {
	if !s.Features.ConsumableCapacity {
		return true
	}
	for name := range r.capacity {
		if _, found := d.Capacity[name]; !found {
			return false
		}
	}
	return s.fits(d, []*request{r}, nil)
}

// fits tells whether a device has room for all requests beside what is consumed.
func (s *solver) fits(d *device, requests []*request, consumed structured.ConsumedCapacity) bool {
	for name, capacity := range d.Capacity {
		var total resource.Quantity
		if before := consumed[name]; before != nil {
			total = before.DeepCopy()
		}
		for _, r := range requests {
			total.Add(r.wanted(name, capacity))
		}
		if total.Cmp(capacity.Value) > 0 {
			return false
		}
	}
	return true
}

// haveCapacity adds up what the requests for each shared device consume.
func (s *solver) haveCapacity(choices []choice) bool {
	if !s.Features.ConsumableCapacity {
		return true
	}
	sharing := make(map[*device][]*request)
	for _, c := range choices {
		if c.device.shared {
			sharing[c.device] = append(sharing[c.device], c.request)
		} else if !s.fits(c.device, []*request{c.request}, s.State.AggregatedCapacity[c.device.id]) {
			return false
		}
	}
	for d, requests := range sharing {
		if !s.fits(d, requests, s.State.AggregatedCapacity[d.id]) {
			return false
		}
	}
	return true
}

// haveCounters adds up what the devices consume of the counters of each pool, those
// that were allocated before included. Devices without counters are not asked, nor is
// admin access, and a shared device consumes them once. Of a device that has left its
// pool it is not known what it consumes, so nothing is available then.
func (s *solver) haveCounters(choices []choice) bool {
	consuming := make(map[*pool][]*device)
	for _, c := range choices {
		d := c.device
		if len(d.ConsumesCounters) == 0 || c.request.adminAccess || d.shared && (s.wasShared(d) || slices.Contains(consuming[d.pool], d)) {
			continue
		}
		consuming[d.pool] = append(consuming[d.pool], d)
	}
	for p, devices := range consuming {
		if s.hasLost(p) {
			return false
		}
		for _, d := range p.published {
			if s.State.AllocatedDevices.Has(d.id) || s.wasShared(d) {
				devices = append(devices, d)
			}
		}
		for _, set := range p.sets {
			for name, counter := range set.Counters {
				if total := consumption(devices, set.Name, name); total.Cmp(counter.Value) > 0 {
					return false
				}
			}
		}
	}
	return true
}

// hasLost tells whether somebody has a device of the pool that is not published.
func (s *solver) hasLost(p *pool) bool {
	inUse := s.State.AllocatedDevices.UnsortedList()
	for share := range s.State.AllocatedSharedDeviceIDs {
		inUse = append(inUse, share.GetDeviceID())
	}
	for id := range s.State.AggregatedCapacity {
		inUse = append(inUse, id)
	}
	return slices.ContainsFunc(inUse, func(id structured.DeviceID) bool {
		return id.Driver.String() == p.driver && id.Pool.String() == p.name &&
			!slices.ContainsFunc(p.published, func(d *device) bool { return d.id == id })
	})
}

func consumption(devices []*device, set, counter string) resource.Quantity {
	var total resource.Quantity
	for _, d := range devices {
		for _, consumes := range d.ConsumesCounters {
			if consumes.CounterSet == set {
				total.Add(consumes.Counters[counter].Value)
			}
		}
	}
	return total
}

// wasShared tells whether somebody before has a share of the device.
func (s *solver) wasShared(d *device) bool {
	if _, found := s.State.AggregatedCapacity[d.id]; found {
		return true
	}
	for share := range s.State.AllocatedSharedDeviceIDs {
		if share.GetDeviceID() == d.id {
			return true
		}
	}
	return false
}

// stage is an assignment to the first requests of a claim.
type stage struct {
	chosen []choice
	// served is the number of requests, the last of which is being served.
	served int
	last   *request
	// complete tells whether the last one has its devices already.
	complete bool
}

// begun asks expressions about assignments to the first requests of a claim, for
// the errors only.
//
// A search that serves one request after the other has asked about a set before it
// finds out that a later request can't be served. If the expression fails then,
// that is its answer.
func (s *solver) begun(c *claim) func(stage) error {
	return func(at stage) error {
		if !s.Eager || !s.isReached(at) {
			return nil
		}
		for i, constraint := range c.constraints {
			if constraint.program == nil || !c.isDecidedAt(constraint, at) || !s.comesTo(c, i, at) {
				continue
			}
			covered := constraint.covered(at.chosen)
			if len(covered) == 0 {
				continue
			}
			s.solution.Evaluations++
			if _, err := s.evaluate(constraint, covered); err != nil {
				return &EvaluationError{Evaluation: s.solution.Evaluations, AboutNode: constraint.aboutNode, Err: err}
			}
		}
		return nil
	}
}

// isReached tells whether the search comes to ask constraints about the assignment.
// Whether there is room for the last of all devices is asked after them.
func (s *solver) isReached(at stage) bool {
	roomFor := at.chosen
	if at.complete && at.last.all {
		roomFor = roomFor[:len(roomFor)-1]
	}
	earlier := slices.Concat(s.chosen...)
	return s.free(at.chosen) && s.haveCounters(slices.Concat(earlier, at.chosen)) && s.haveCapacity(slices.Concat(earlier, roomFor))
}

// isDecidedAt tells whether it is now that the devices of the constraint become
// known: when the last request that it is about has its devices, or is to be
// served in a way that adds none.
func (c *claim) isDecidedAt(constraint constraint, at stage) bool {
	isAbout := func(alternatives []*request) bool { return slices.ContainsFunc(alternatives, constraint.covers) }
	if !isAbout(c.requests[at.served-1]) || slices.ContainsFunc(c.requests[at.served:], isAbout) {
		return false
	}
	return at.complete == (constraint.covers(at.last) && at.last.count > 0)
}

// comesTo tells whether the constraints that compare attributes accept the
// assignment before the constraint at index is asked. About its last device only
// those are asked first that stand before it.
func (s *solver) comesTo(c *claim, index int, at stage) bool {
	for i, constraint := range c.constraints {
		seen := at.chosen
		if at.complete && i > index {
			seen = seen[:len(seen)-1]
		}
		if constraint.program == nil && !constraint.compares(constraint.covered(seen), s.Features.ListTypeAttributes) {
			return false
		}
	}
	return true
}
