// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"math"
	"slices"
	"sync"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/freesets"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/cel/device/bitset"
)

// KeepWhole prefers the devices that leave the most sets for other claims. A set of devices is whole if all its devices are
// free, and broken otherwise. KeepWhole counts sets that satisfy a constraint of a device class and have a size that claims ask
// for. It breaks as few of them as possible, and larger sets matter more. So a single device comes from a broken pair, a pair
// comes from a broken quad, and a block comes from a corner.
//
// Taking more devices never breaks fewer sets. So the loss of a partial set is a lower bound for its completions and cuts
// branches.

// fragmentation is the objective function of the policy. Its value is minus the loss ([freesets.Lost]). As a constraint, it
// accepts only sets with a smaller loss than the incumbent.
type fragmentation struct {
	goal   search.Goal
	search *search.Search
	name   string
	coverage
	members []*inventory.Candidate
	// domain is a buffer for the devices that the search may take next.
	domain bitset.Set
	// shapes lists the shapes with sets on the node, most devices first. free counts their sets that are still whole.
	shapes []shape.Shape
	free   *freesets.Free
	// mayCutAtAll evaluates the selectors of span, once. It returns true if they can't fail and span evaluates nothing else.
	mayCutAtAll func() bool
	// cut is the number of partial sets that the bound excluded.
	cut int64
}

// coverage holds the requests whose devices the preference covers.
type coverage struct {
	// claimIndex is the index of the claim. last is the index in the claim of the last covered request.
	claimIndex, last int
	// span holds the requests of the claim from the first covered request to the last.
	span []*search.Request
	// covered lists the requests that the preference covers. wanted is the number of their devices.
	covered []*search.Request
	wanted  int
}

// newFragmentation returns the objective function for a search whose requests have one alternative each.
func newFragmentation(s *search.Search, p *plan.Preference, all []search.Alternatives) *fragmentation {
	f := &fragmentation{search: s, name: p.Name, coverage: coverage{claimIndex: len(s.Requests) - 1}}
	for i, a := range all {
		r := a[0]
		if !constraint.Covers(p.API, &r.Request) || r.AdminAccess() {
			continue
		}
		f.last = i
		f.covered = append(f.covered, r)
		f.wanted += r.Count
		r.AddConstraint(f)
	}
	for _, a := range all {
		if r := a[0]; len(f.covered) > 0 && r.Order >= f.covered[0].Order && r.Order <= f.last {
			f.span = append(f.span, r)
		}
	}
	f.mayCutAtAll = sync.OnceValue(func() bool {
		return s.IsPredictable(f.claimIndex, f.span)
	})
	s.SymmetryOff = true
	return f
}

// begin lists the sets of the shapes and marks the broken sets. It ignores shapes without devices of the members' drivers.
func (f *fragmentation) begin(shapes []shape.Shape, members []*inventory.Candidate) error {
	s := f.search
	broken := bitset.New(len(s.Inventory.Candidates))
	copy(broken, s.Allocated)
	conflicts := s.Conflicts()
	alike := bitset.New(len(s.Inventory.Candidates))
	for _, c := range s.Inventory.Candidates {
		if c.Shared && s.Planner.State.IsShared(c.ID) {
			broken.Add(c.Position)
		}
		if slices.ContainsFunc(members, func(m *inventory.Candidate) bool { return m.Pool.Driver == c.Pool.Driver }) {
			alike.Add(c.Position)
		}
	}
	if conflicts != nil {
		for position := range s.Allocated.All() {
			broken.Join(conflicts(position))
		}
	}
	var found []*freesets.Sets
	for _, shape := range shapes {
		if len(found) == freesets.MaxShapes {
			break
		}
		sets, err := s.SetsOf(s.Ctx, shape, listSets)
		if err != nil {
			return err
		}
		if sets.Meets(alike) {
			at := 0
			for at < len(found) && f.shapes[at].Count >= shape.Count {
				at++
			}
			found, f.shapes = slices.Insert(found, at, sets), slices.Insert(f.shapes, at, shape)
		}
	}
	f.domain = bitset.New(len(s.Inventory.Candidates))
	f.free = freesets.New(found, len(s.Inventory.Candidates), broken, conflicts)
	return nil
}

// isAbout reports whether the preference covers the request of the chosen device.
func (f *fragmentation) isAbout(c *search.Choice) bool {
	return c.Claim == f.claimIndex && slices.ContainsFunc(f.covered, func(r *search.Request) bool { return r.Order == c.Request.Order })
}

// valueOf returns the value of a complete set.
func (f *fragmentation) valueOf(members []*inventory.Candidate) (int64, error) {
	for _, c := range members {
		f.free.Take(c.Position)
	}
	value := f.value()
	for _, c := range slices.Backward(members) {
		f.free.GiveBack(c.Position)
	}
	return value, nil
}

func (f *fragmentation) value() int64 { return -int64(f.free.Lost()) }

func (f *fragmentation) isBest(value int64) bool { return value == 0 }

// most returns no useful bound, because sets that break no other set are rare.
func (f *fragmentation) most() int64 { return math.MaxInt64 }

func (f *fragmentation) IsComplete() bool { return len(f.members) == f.wanted && f.wanted > 0 }

func (f *fragmentation) Target() *search.Goal { return &f.goal }

func (f *fragmentation) raise() {}

// Add implements [constraint.Constraint].
func (f *fragmentation) Add(r *requests.Request, c *inventory.Candidate) (bool, error) {
	f.members = append(f.members, c)
	f.free.Take(c.Position)
	switch {
	case f.IsComplete():
		if f.goal.Value = f.value(); f.goal.Value > f.goal.Floor {
			return true, nil
		}
	case !f.mayCutAtAll() || f.value() > f.goal.Floor && f.bound(r, c) > f.goal.Floor || !f.mayCut(r, c):
		return true, nil
	default:
		f.cut++
	}
	f.Remove(c)
	return false, nil
}

// bound returns an upper bound of the value of complete sets that contain the members. c is the member that was added last.
func (f *fragmentation) bound(of *requests.Request, c *inventory.Candidate) int64 {
	r := f.covered[len(f.covered)-1]
	if &r.Request != of || r.WantsAll() {
		return f.value()
	}
	f.domain.SetTo(r.Passed())
	f.domain.Drop(f.search.Available.Taken())
	for position := range c.Position + 1 {
		f.domain.Remove(position)
	}
	f.domain.Drop(f.search.Allocated)
	left, forced := f.wanted-len(f.members), r.Narrow(f.domain, f.last)
	return -int64(f.leastLost(left, forced))
}

// leastLost returns a lower bound of the loss after taking left more devices of the domain, including the forced devices.
func (f *fragmentation) leastLost(left int, forced bitset.Set) freesets.Lost {
	taken := 0
	if forced != nil && forced.Count() <= left {
		for position := range forced.All() {
			f.free.Take(position)
			taken++
		}
		f.domain.Drop(forced)
	}
	least := f.free.AtLeast(left-taken, f.domain)
	if least < math.MaxInt64 {
		least += f.free.Lost()
	}
	if taken > 0 {
		for position := range forced.All() {
			f.free.GiveBack(position)
		}
	}
	return least
}

// Remove implements [constraint.Constraint].
func (f *fragmentation) Remove(c *inventory.Candidate) {
	f.free.GiveBack(c.Position)
	f.members = f.members[:len(f.members)-1]
}

// Len implements [constraint.Constraint].
func (f *fragmentation) Len() int { return len(f.members) }

// mayCut reports whether a branch may be cut, because no other expression can fail in it before the set is complete.
func (f *fragmentation) mayCut(r *requests.Request, last *inventory.Candidate) bool {
	return !f.search.MayFailBetween(f.claimIndex, r.Order, f.last, last)
}

// lost decodes a value of the objective function: the numbers of broken and of whole sets of each shape.
func (f *fragmentation) lost(value int64) []answer.Loss {
	losses := make([]answer.Loss, len(f.shapes))
	for i, shape := range f.shapes {
		lost := freesets.Lost(-value).Of(i, len(f.shapes))
		losses[i] = answer.Loss{Shape: shape, Lost: lost, Left: f.free.Before(i) - lost}
	}
	return losses
}

// lossesOf returns the broken and whole sets for a value of a policy. It returns nil for an expression.
func lossesOf(o objectiveFunction, value int64) []answer.Loss {
	if f, is := o.(*fragmentation); is {
		return f.lost(value)
	}
	return nil
}
