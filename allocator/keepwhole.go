// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/room"
	"github.com/celset/celset/cel/device/bitset"
)

// KeepWhole wants a set after which most is left for others: of the sets that satisfy the constraints
// of device classes, for as many devices as others ask for, as few as possible are to be broken, those
// of the most devices first. So a single device is taken from a pair that is broken already, a pair
// from a broken quad, and a block from a corner.
//
// What a set breaks is known as soon as its devices are, and more devices never break less. So a part
// of a set tells at least how bad the whole will be, and that cuts.

// wholeness is the preference as a condition: the set breaks less than the one found before. Its value is
// minus what is broken ([room.Loss]).
type wholeness struct {
	aim    goal
	search *search
	name   string
	// claimIndex is the claim's place, last that of the last covered request in it.
	claimIndex, last int
	// span are the requests from the first covered one to the last.
	span []*request
	// covered are the requests whose devices count, wanted is how many these are.
	covered []*request
	wanted  int
	members []*inventory.Candidate
	// domain is memory for the devices that may come next.
	domain bitset.Set
	// shapes are those that the node has sets of, most devices first. room is what is left of them.
	shapes []Shape
	room   *room.Room
	// cuts is what may be said of parts of sets.
	cuts cutting
	cut  int64
}

// cutting tells whether parts of sets may be refused.
type cutting int8

const (
	cuttingUnknown cutting = iota
	// cuttingNever: something may fail on the way to a complete set.
	cuttingNever
	cuttingUnlessOthersFail
)

// newWholeness is the preference for a search whose requests have one alternative each.
func (s *search) newWholeness(p *preference, all []alternatives) *wholeness {
	w := &wholeness{search: s, name: p.name, claimIndex: len(s.requests) - 1}
	for i, a := range all {
		r := a[0]
		if !constraint.Covers(p.api, &r.Request) || r.AdminAccess() {
			continue
		}
		w.last = i
		w.covered = append(w.covered, r)
		w.wanted += r.Count
		r.addConstraint(w)
	}
	for _, a := range all {
		if r := a[0]; len(w.covered) > 0 && r.Order >= w.covered[0].Order && r.Order <= w.last {
			w.span = append(w.span, r)
		}
	}
	s.tellsApart = true
	return w
}

// begin finds out what is left for others, of the shapes that matter to devices as those given.
func (w *wholeness) begin(shapes []Shape, members []*inventory.Candidate) error {
	s := w.search
	broken := bitset.New(len(s.inventory.Candidates))
	copy(broken, s.allocated)
	conflicts := s.inventory.Conflicts()
	alike := bitset.New(len(s.inventory.Candidates))
	for _, c := range s.inventory.Candidates {
		if c.Shared && s.allocator.state.IsShared(c.ID) {
			broken.Add(c.Position)
		}
		if slices.ContainsFunc(members, func(m *inventory.Candidate) bool { return m.Pool.Driver == c.Pool.Driver }) {
			alike.Add(c.Position)
		}
	}
	if conflicts != nil {
		for position := range s.allocated.All() {
			broken.Join(conflicts(position))
		}
	}
	var found []*room.Sets
	for _, shape := range shapes {
		if len(found) == room.MaxShapes {
			break
		}
		sets, err := s.allocator.shapes.setsOn(s, shape)
		if err != nil {
			return err
		}
		if sets.Meets(alike) {
			at := 0
			for at < len(found) && w.shapes[at].Count >= shape.Count {
				at++
			}
			found, w.shapes = slices.Insert(found, at, sets), slices.Insert(w.shapes, at, shape)
		}
	}
	w.domain = bitset.New(len(s.inventory.Candidates))
	w.room = room.New(found, len(s.inventory.Candidates), broken, conflicts)
	return nil
}

// isAbout tells whether a device that was chosen counts.
func (w *wholeness) isAbout(c *choice) bool {
	return c.claim == w.claimIndex && slices.ContainsFunc(w.covered, func(r *request) bool { return r.Order == c.request.Order })
}

// valueOf is the value of a set.
func (w *wholeness) valueOf(members []*inventory.Candidate) (int64, error) {
	for _, c := range members {
		w.room.Take(c.Position)
	}
	value := w.value()
	for _, c := range slices.Backward(members) {
		w.room.GiveBack(c.Position)
	}
	return value, nil
}

func (w *wholeness) value() int64 { return -int64(w.room.Loss()) }

func (w *wholeness) isBest(value int64) bool { return value == 0 }

// most is not known: that nothing breaks is rare.
func (w *wholeness) most() int64 { return math.MaxInt64 }

func (w *wholeness) isComplete() bool { return len(w.members) == w.wanted && w.wanted > 0 }

func (w *wholeness) target() *goal { return &w.aim }

func (w *wholeness) raise() {}

// Add implements [constraint.Constraint].
func (w *wholeness) Add(r *requests.Request, c *inventory.Candidate) (bool, error) {
	w.members = append(w.members, c)
	w.room.Take(c.Position)
	switch {
	case w.isComplete():
		if w.aim.value = w.value(); w.aim.value > w.aim.floor {
			return true, nil
		}
	case !w.cutsAtAll() || w.value() > w.aim.floor && w.bound(r, c) > w.aim.floor || !w.mayCut(r, c):
		return true, nil
	default:
		w.cut++
	}
	w.Remove(c)
	return false, nil
}

// bound is what no complete set exceeds that has the members, of which c is the last one.
func (w *wholeness) bound(of *requests.Request, c *inventory.Candidate) int64 {
	r := w.covered[len(w.covered)-1]
	if &r.Request != of || r.WantsAll() {
		return w.value()
	}
	w.domain.SetTo(r.group.selectors.Passed())
	w.domain.Drop(w.search.available.Taken())
	for position := range c.Position + 1 {
		w.domain.Remove(position)
	}
	w.domain.Drop(w.search.allocated)
	left, forced := w.wanted-len(w.members), bitset.Set(nil)
	for _, d := range r.decides {
		if p := d.constraint.pruner; d.covered && p.begun {
			level := len(d.constraint.members)
			w.domain.Keep(p.domain.At(level))
			if d.constraint.last == w.last {
				forced = p.forced.At(level)
			}
		}
	}
	return -int64(w.leastLoss(left, forced))
}

// leastLoss is what so many more devices of the domain break at least, the forced ones among them,
// with what is broken already.
func (w *wholeness) leastLoss(left int, forced bitset.Set) room.Loss {
	taken := 0
	if forced != nil && forced.Count() <= left {
		for position := range forced.All() {
			w.room.Take(position)
			taken++
		}
		w.domain.Drop(forced)
	}
	least := w.room.AtLeast(left-taken, w.domain)
	if least < math.MaxInt64 {
		least += w.room.Loss()
	}
	if taken > 0 {
		for position := range forced.All() {
			w.room.GiveBack(position)
		}
	}
	return least
}

// Remove implements [constraint.Constraint].
func (w *wholeness) Remove(c *inventory.Candidate) {
	w.room.GiveBack(c.Position)
	w.members = w.members[:len(w.members)-1]
}

// Len is the number of devices in the set.
func (w *wholeness) Len() int { return len(w.members) }

// Rejection is nil: where all devices are wanted there is no other set.
func (w *wholeness) Rejection(*requests.Request, *inventory.Candidate) error { return nil }

// cutsAtAll tells whether nothing may fail on the way to complete sets that only the search itself
// finds out. Selectors are known then.
func (w *wholeness) cutsAtAll() bool {
	if w.cuts == cuttingUnknown {
		s := w.search
		w.cuts = cuttingUnlessOthersFail
		if s.allocator.unbounded || !withinLimit(s.requests[w.claimIndex]) || !s.lookahead.speculate(w.span...) {
			w.cuts = cuttingNever
		}
	}
	return w.cuts != cuttingNever
}

// mayCut tells whether the search would meet no error of another expression on the way to a complete
// set, as a [pruner] does.
func (w *wholeness) mayCut(r *requests.Request, last *inventory.Candidate) bool {
	for _, o := range w.search.celConstraints {
		if o.claimIndex == w.claimIndex && o.last >= r.Order && o.first <= w.last && o.mayFail(last) {
			return false
		}
	}
	return true
}

// lost are the shapes with what a value says of them.
func (w *wholeness) lost(value int64) []ShapeLoss {
	losses := make([]ShapeLoss, len(w.shapes))
	for i, shape := range w.shapes {
		lost := room.Loss(-value).Of(i, len(w.shapes))
		losses[i] = ShapeLoss{Shape: shape, Lost: lost, Left: w.room.Before(i) - lost}
	}
	return losses
}

// lossesOf are nil for an expression.
func lossesOf(o objective, value int64) []ShapeLoss {
	if w, is := o.(*wholeness); is {
		return w.lost(value)
	}
	return nil
}

// PolicyValues tells what policies say of the devices that a claim has on a node: what
// [Allocator.AllocateWithDetails] would tell of them if it chose these devices now. So the Allocator must
// take them for free. What a policy thought of them when they were chosen may have been something
// else, for others were in use.
//
// Preferences that are expressions are left out: they depend on nothing but the devices. The error is one
// that Allocate would return for the claim on any node, or one of the devices is not there.
func (a *Allocator) PolicyValues(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim) ([]PreferenceValue, error) {
	definitions, err := a.resolved(claim).definitions()
	if err != nil || !slices.ContainsFunc(definitions.preferences, func(p preference) bool { return p.policy != "" }) {
		return nil, err
	}
	on, err := a.planFor([]*resourceapi.ResourceClaim{claim}).on(node)
	if err != nil {
		return nil, err
	}
	s, err := newSearch(ctx, on, nil)
	if err != nil {
		return nil, err
	}
	if err := s.hasChosen(claim); err != nil {
		return nil, err
	}
	var values []PreferenceValue
	for i := range definitions.preferences {
		p := &definitions.preferences[i]
		if p.policy == "" || !p.isAbout(0, &s.solution) {
			continue
		}
		limits := goalLimits{a.preferenceCost, a.preferenceSteps}
		n, err := newSearch(ctx, on, &improvement{incumbent: &s.solution, next: placeOfPreference{0, i}, limits: limits})
		if err != nil {
			return nil, err
		}
		chosen := n.improves.chosenFor(n.objective)
		if len(chosen) == 0 {
			continue
		}
		value, err := n.objective.valueOf(chosen)
		if err != nil {
			return nil, err
		}
		values = append(values, PreferenceValue{Preference: i, Name: p.name, Value: value, Losses: lossesOf(n.objective, value)})
	}
	return values, nil
}

// hasChosen takes what the claim has for the solution of the search.
func (s *search) hasChosen(claim *resourceapi.ResourceClaim) error {
	var results []resourceapi.DeviceRequestAllocationResult
	if claim.Status.Allocation != nil {
		results = claim.Status.Allocation.Devices.Results
	}
	for _, all := range s.requests[0] {
		met := all[0]
		for _, r := range all {
			if slices.ContainsFunc(results, func(d resourceapi.DeviceRequestAllocationResult) bool { return d.Request == r.Name }) {
				met = r
				break
			}
		}
		s.solution.decisions = append(s.solution.decisions, met)
		for _, d := range results {
			if d.Request != met.Name {
				continue
			}
			id := structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
			at := slices.IndexFunc(s.inventory.Candidates, func(c *inventory.Candidate) bool { return c.ID == id })
			if at < 0 {
				return met.Errorf("device %s, which it has, is not among those of node %s", id, s.node.Name)
			}
			s.solution.choices = append(s.solution.choices, choice{request: met, Candidate: s.inventory.Candidates[at]})
		}
	}
	return nil
}
