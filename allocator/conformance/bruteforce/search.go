// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Solve tries all assignments until one is valid. The error is an [*EvaluationError] if a CEL constraint fails for an
// assignment. Other errors mean that Solve does not support the problem, or that a request for all devices meets an incomplete
// or invalid pool, which excludes the node.
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

// tryClaim assigns devices to the claims from the given index on. The earlier claims already have their devices.
func (s *solver) tryClaim(index int) (bool, error) {
	if index == len(s.claims) {
		s.record()
		return true, nil
	}
	found := false
	err := s.claims[index].assignments(s.evaluatePartial(s.claims[index]), func(assignment []choice) (bool, error) {
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

// record stores the current assignments as the solution.
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

// assignments calls visit for each complete assignment: every request of the claim, or one of its alternatives, gets the number
// of devices that it wants. The order is lexicographic: requests and alternatives as listed, and the devices of a request in
// ascending order. A device is used once, or by several requests if it is shared. assignments stops when visit returns false or
// an error. visit may keep the assignment.
//
// Before visit, assignments calls begun for each partial assignment (a [stage]).
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

// subsets calls visit for each set of devices that the request could get if no other request existed. A request for all devices
// has at most one set. It has no set if it selects no device or if a selected device is not usable.
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

// available reports whether neither earlier claims nor earlier allocations prevent the assignment.
func (s *solver) available(assignment []choice) bool {
	together := slices.Concat(slices.Concat(s.chosen...), assignment)
	return s.free(assignment) && s.haveCapacity(together) && s.haveCounters(together)
}

// free reports whether no earlier allocation and no earlier claim of this solution uses the devices. Earlier allocations
// include shares of devices that are no longer shared. Requests with admin access ignore other users of a device.
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

// wanted returns the amount of a capacity that a request consumes: the requested amount, or the whole capacity.
func (r *request) wanted(name resourceapi.QualifiedName, capacity resourceapi.DeviceCapacity) resource.Quantity {
	if amount, found := r.capacity[name]; found {
		return amount
	}
	return capacity.Value
}

// isLargeEnough reports whether the device has the requested capacities when it is unused.
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

// fits reports whether a device has enough capacity for all the given requests in addition to the consumed capacity.
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

// haveCapacity reports whether each shared device among the choices has enough capacity for all its requests.
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

// haveCounters reports whether each pool has enough counters for the chosen devices and the earlier allocations. Devices
// without counters and admin access don't count. A shared device counts once. If an allocated device is no longer published,
// its consumption is unknown, so no counter is available.
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

// hasLost reports whether an allocated device of the pool is no longer published.
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

// wasShared reports whether an earlier allocation has a share of the device.
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

// A stage is a partial assignment: devices for the first requests of a claim.
type stage struct {
	chosen []choice
	// served is the number of requests in the stage, including the current one. last is the current request or its alternative.
	served int
	last   *request
	// complete is true if the current request has got its devices.
	complete bool
}

// evaluatePartial returns a function that evaluates expressions for a partial assignment, and returns only their errors.
//
// A search that handles one request after the other evaluates a set before it finds that a later request can't be met. If the
// expression fails for this set, the search returns the error.
func (s *solver) evaluatePartial(c *claim) func(stage) error {
	return func(at stage) error {
		if !s.Eager || !s.isReached(at) {
			return nil
		}
		for i, constraint := range c.constraints {
			if constraint.program == nil || !c.isDecidedAt(constraint, at) || !s.passesEarlierConstraints(c, i, at) {
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

// isReached reports whether the allocator's search evaluates constraints for the stage. The devices must be free and must have
// enough counters and capacity. For the last device of a request for all devices, the search checks the capacity only later.
func (s *solver) isReached(at stage) bool {
	roomFor := at.chosen
	if at.complete && at.last.all {
		roomFor = roomFor[:len(roomFor)-1]
	}
	earlier := slices.Concat(s.chosen...)
	return s.free(at.chosen) && s.haveCounters(slices.Concat(earlier, at.chosen)) && s.haveCapacity(slices.Concat(earlier, roomFor))
}

// isDecidedAt reports whether the constraint's set becomes complete at this stage. Either the last covered request has just got
// its devices, or the search has just begun an alternative of this request that adds no devices.
func (c *claim) isDecidedAt(constraint constraint, at stage) bool {
	isAbout := func(alternatives []*request) bool { return slices.ContainsFunc(alternatives, constraint.covers) }
	if !isAbout(c.requests[at.served-1]) || slices.ContainsFunc(c.requests[at.served:], isAbout) {
		return false
	}
	return at.complete == (constraint.covers(at.last) && at.last.count > 0)
}

// passesEarlierConstraints reports whether the search evaluates the constraint at index. All constraints that compare
// attributes must accept the assignment. Constraints after index have not checked the last device yet.
func (s *solver) passesEarlierConstraints(c *claim, index int, at stage) bool {
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
