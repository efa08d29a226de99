// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/verdict"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// CELConstraint is the CEL device constraint of KEP-5254. It collects devices until the set is complete, and then evaluates the
// expression. Its value for a partial set says nothing about complete sets. pruner.go explains how bounds exclude partial sets.
//
// The size of a complete set is not fixed at the start. A request with alternatives contributes the devices of its current
// alternative, or no devices if the constraint does not cover that alternative. The search takes requests in order and devices
// in ascending order, so members are always in the order that an expression expects.
type CELConstraint struct {
	*definition.Definition
	coverage
	progress
	counts
	search *Search
	claim  *resourceapi.ResourceClaim
	// values is a buffer that memberValues fills with the devices of a complete set.
	values []*device.Device
	// verdictTable caches the verdicts on sets. It is nil until it is needed. positions is a buffer for the key of a set.
	verdictTable *verdict.Table
	positions    []int
	// pruners holds a pruner for each alternative of the first covered request. pruner is for the current or last alternative.
	pruners []*pruner
	pruner  *pruner
	// Goal is the condition on the value of a preference, nil for a constraint.
	Goal *Goal
}

// coverage holds the requests whose devices make up the set. It is filled when the search is set up.
type coverage struct {
	// claimIndex is the index of the claim in the pod. first and last are the indices in the claim of the first and the last
	// request that the constraint covers.
	claimIndex, first, last int
	// covered holds, for each request, the alternatives that the constraint covers. Requests without any are left out.
	covered []Alternatives
}

// progress describes the partial set. It changes when the search tries an alternative, or takes or gives back a device.
type progress struct {
	// undecided is the number of covered requests without a current alternative. The other covered requests contribute wanted
	// devices.
	undecided, wanted int
	// members holds the devices of the set so far.
	members []*inventory.Candidate
}

// counts holds counters that [answer.Stats] and [reason] use.
type counts struct {
	// evaluations counts evaluations of the expression. hits counts verdicts from the cache. accepted and rejected count
	// complete sets by verdict. proven counts sets that were accepted without an evaluation.
	evaluations, hits, accepted, rejected, proven int64
}

// NewCELConstraint adds a constraint to the claim that is being set up. d is the definition that the constraint api refers to.
func (s *Search) NewCELConstraint(claim *resourceapi.ResourceClaim, d *definition.Definition, api *resourceapi.DeviceConstraint, requests []Alternatives) *CELConstraint {
	c := &CELConstraint{Definition: d, search: s, claim: claim, coverage: coverage{claimIndex: len(s.Requests) - 1, first: len(requests)}}
	for i, all := range requests {
		var covered Alternatives
		for _, r := range all {
			if constraint.Covers(api, &r.Request) {
				covered = append(covered, r)
			}
		}
		if len(covered) == 0 {
			continue
		}
		c.covered = append(c.covered, covered)
		c.first, c.last = min(c.first, i), i
		c.undecided++
		// The search may also try an alternative that is not covered. The request then contributes no devices to the set.
		for _, r := range all {
			r.decides = append(r.decides, contribution{c, constraint.Covers(api, &r.Request)})
		}
	}
	if len(c.covered) > 0 {
		for _, r := range requests[c.first] {
			c.pruners = append(c.pruners, newPruner(c, r))
		}
		c.pruner = c.pruners[0]
	}
	s.celConstraints = append(s.celConstraints, c)
	return c
}

// selectPruner makes the pruner of r the current pruner if r is an alternative of the first covered request.
func (c *CELConstraint) selectPruner(r *Request) {
	for _, p := range c.pruners {
		if p.first == r {
			c.pruner = p
		}
	}
}

// isActive reports whether the search has chosen an alternative of the first covered request.
func (c *CELConstraint) isActive() bool { return c.undecided < len(c.covered) }

// isEvaluatedAfter reports whether c evaluates its set only after other has accepted its own set. This is so if the last
// covered request of c comes after the last covered request of other. If both constraints have the same last request, c must
// come behind other in the list of constraints and the request must have no alternatives.
func (c *CELConstraint) isEvaluatedAfter(other *CELConstraint, behind bool) bool {
	return c.last > other.last || behind && c.last == other.last && len(c.search.Requests[c.claimIndex][c.last]) == 1
}

// cuts returns the number of partial sets that the pruners excluded plus the number of devices that they removed from domains.
func (c *CELConstraint) cuts() int64 {
	var cuts int64
	for _, p := range c.pruners {
		cuts += p.cuts
	}
	return cuts
}

// refused counts the complete sets, partial sets and devices that the expression excluded. A partial set that lacks devices
// does not count, because the expression is not the cause.
func (c *CELConstraint) refused() int64 {
	n := c.rejected + c.cuts()
	for _, p := range c.pruners {
		n -= p.lacked
	}
	return n
}

// mayFail reports whether the expression may fail for some completion of the set. The completion may contain the device last,
// whether or not last is in the set already. last may be nil.
func (c *CELConstraint) mayFail(last *inventory.Candidate) bool {
	mayFail := func(p *pruner) bool { return !p.isPrepared() || p.mayFail(last) }
	if c.isActive() {
		return mayFail(c.pruner)
	}
	return slices.ContainsFunc(c.pruners, mayFail)
}

// contribution links a request to a constraint whose set size depends on it. covered is true if the constraint covers it.
type contribution struct {
	constraint *CELConstraint
	covered    bool
}

func (c contribution) devices(r *Request) int {
	if c.covered {
		return r.Count
	}
	return 0
}

// decide records in all constraints of r.decides that the search now tries r. It returns false if a constraint excludes r,
// because the bounds allow no set or the complete set is not satisfactory. It has then undone its changes.
func (r *Request) decide() (bool, error) {
	for _, d := range r.decides {
		d.constraint.selectPruner(r)
	}
	for i, d := range r.decides {
		satisfied, err := d.constraint.decide(d.devices(r))
		if err != nil || !satisfied {
			r.undecide(i)
			return false, err
		}
	}
	return true, nil
}

// undecide undoes decide for the first n constraints in r.decides.
func (r *Request) undecide(n int) {
	for i := n - 1; i >= 0; i-- {
		r.decides[i].constraint.undecide(r.decides[i].devices(r))
	}
}

func (c *CELConstraint) decide(devices int) (bool, error) {
	c.undecided--
	c.wanted += devices
	satisfied, err := c.afterDecision(devices)
	if err != nil || !satisfied {
		c.undecide(devices)
	}
	return satisfied, err
}

func (c *CELConstraint) afterDecision(devices int) (bool, error) {
	if c.undecided == len(c.covered)-1 && len(c.members) == 0 && !c.pruner.begin() {
		return false, c.pruner.failure()
	}
	// Usually the last device completes the set. The decision completes it if the remaining requests contribute no devices.
	if devices > 0 || !c.IsComplete() {
		return true, c.pruner.failure()
	}
	return c.evaluate()
}

func (c *CELConstraint) undecide(devices int) {
	c.undecided++
	c.wanted -= devices
	if c.undecided == len(c.covered) {
		c.pruner.end()
	}
}

// IsComplete reports whether the set has all its devices. It returns false for an empty set, which is not evaluated.
func (c *CELConstraint) IsComplete() bool {
	return c.undecided == 0 && len(c.members) == c.wanted && c.wanted > 0
}

// Add implements [constraint.Constraint].
func (c *CELConstraint) Add(r *requests.Request, added *inventory.Candidate) (bool, error) {
	if err := c.search.Work.Cancelled(); err != nil {
		return false, err
	}
	c.members = append(c.members, added)
	satisfied := c.pruner.descend(r, added)
	err := c.pruner.failure()
	if satisfied && err == nil && c.IsComplete() {
		satisfied, err = c.evaluate()
	}
	if err != nil || !satisfied {
		c.Remove(added)
		return false, err
	}
	return true, nil
}

// Remove implements [constraint.Constraint].
func (c *CELConstraint) Remove(removed *inventory.Candidate) {
	c.pruner.ascend(removed)
	c.members = c.members[:len(c.members)-1]
}

// Len implements [constraint.Constraint].
func (c *CELConstraint) Len() int { return len(c.members) }

// evaluate reports whether the complete set is satisfactory. It evaluates the expression only if the bounds don't decide.
func (c *CELConstraint) evaluate() (bool, error) {
	if err := c.search.Work.Cancelled(); err != nil {
		return false, err
	}
	if c.pruner.outcome() == bound.True {
		c.accepted++
		c.proven++
		return true, nil
	}
	if err := c.pruner.failure(); err != nil {
		return false, err
	}
	var satisfied bool
	var err error
	if c.Goal != nil {
		satisfied, err = c.isReached()
	} else {
		satisfied, err = c.verdict()
	}
	switch {
	case err != nil:
		return false, c.evaluationError(err)
	case satisfied:
		c.accepted++
	default:
		c.rejected++
	}
	return satisfied, nil
}

func (c *CELConstraint) evaluationError(err error) error {
	if budget.IsExceeded(err) {
		return c.costError(err)
	}
	if onNode := c.evaluationErrorOnNode(err); onNode != nil {
		return onNode
	}
	ids := make([]string, len(c.members))
	for i, member := range c.members {
		ids[i] = member.ID.String()
	}
	err = fmt.Errorf("claim %s, %s %s, node %s, devices [%s]: %w",
		klog.KObj(c.claim), c.role(), c.Name, c.search.Node.Name, strings.Join(ids, ", "), err)
	if c.Goal != nil {
		return PreferenceError{err}
	}
	return err
}

// role returns the term for c in messages.
func (c *CELConstraint) role() string {
	if c.Key.IsGoal {
		return "preference"
	}
	return "constraint"
}

// verdict returns the cached verdict on the complete set, or evaluates the expression. Both charge the same cost. Otherwise
// earlier searches would affect whether this search stays within its budget.
func (c *CELConstraint) verdict() (bool, error) {
	s := c.search
	if s.Planner.Unbounded {
		v, err := c.EvaluateSet()
		return v.Satisfied, err
	}
	if c.verdictTable == nil {
		c.verdictTable = s.VerdictsOf(c.Definition)
	}
	c.positions = c.positions[:0]
	for _, member := range c.members {
		c.positions = append(c.positions, member.Position)
	}
	v, known, err := c.verdictTable.Find(s.Ctx, c.positions, c)
	if known {
		c.hits++
		err = s.Work.Cost.Charge(v.Cost)
	}
	return v.Satisfied, plan.Interrupted(s.Ctx, err)
}

// EvaluateSet implements [verdict.Evaluator].
func (c *CELConstraint) EvaluateSet() (verdict.Verdict, error) {
	c.evaluations++
	before := c.search.Work.Cost.Spent()
	satisfied, err := c.Expression.Satisfied(c.search.Ctx, c.memberValues(), c.search.Work.Cost)
	return verdict.Verdict{Satisfied: satisfied, Cost: c.search.Work.Cost.Spent() - before}, err
}

// memberValues returns the devices of the set in the form that expressions use. The slice is valid until the next call.
func (c *CELConstraint) memberValues() []*device.Device {
	values := c.search.View().Values
	c.values = c.values[:0]
	for _, member := range c.members {
		c.values = append(c.values, values[member.Position])
	}
	return c.values
}

// evaluationErrorOnNode returns an error that excludes only this node, or nil if the failure ends the attempt on all nodes.
func (c *CELConstraint) evaluationErrorOnNode(err error) *answer.Error {
	failure, ok := errors.AsType[*cel.Error](err)
	if !ok || c.FailurePolicy != v1alpha1.FailurePolicyNodeDoesNotFit {
		return nil
	}
	positions := make([]int, len(c.members))
	for i, member := range c.members {
		positions[i] = member.Position
	}
	e := answer.NewError(c.Name, failure, c.claimIndex, positions)
	if e == nil {
		return nil
	}
	return c.search.FailureHere(e)
}

// Covers reports whether the constraint covers the request that the device was chosen for.
func (c *CELConstraint) Covers(chosen *Choice) bool {
	return chosen.Claim == c.claimIndex && slices.ContainsFunc(c.covered, func(all Alternatives) bool {
		return slices.ContainsFunc(all, func(r *Request) bool {
			return r.Order == chosen.Request.Order && r.alternative == chosen.Request.alternative
		})
	})
}

// ValueOf returns the value of the preference c for the given set. c must have no members.
func (c *CELConstraint) ValueOf(members []*inventory.Candidate) (int64, error) {
	c.members = append(c.members, members...)
	defer func() { c.members = c.members[:0] }()
	value, err := c.value()
	if err != nil {
		return 0, c.evaluationError(err)
	}
	return value, nil
}

// Most returns an upper bound of the preference's value over all sets, or [math.MaxInt64]. A bound exists only if the last
// device of all claims completes the set. Otherwise tryBound in package objective could skip a set that is followed by an
// error.
func (c *CELConstraint) Most() int64 {
	requests := c.search.Requests
	if c.search.Planner.Unbounded || c.claimIndex != len(requests)-1 || c.last != len(requests[c.claimIndex])-1 || !c.pruner.isPrepared() {
		return math.MaxInt64
	}
	return c.pruner.most()
}

// Raise passes the new floor of the goal to the bounds. The bounds then exclude sets whose value is not above the floor.
func (c *CELConstraint) Raise() {
	for _, p := range c.pruners {
		p.raise()
	}
}

// value evaluates the preference for the complete set.
func (c *CELConstraint) value() (int64, error) {
	c.evaluations++
	return c.Expression.Value(c.search.Ctx, c.memberValues(), c.search.Work.Cost)
}

// isReached reports whether the value of the complete set is above the goal's floor. If so, it stores the value in the goal.
func (c *CELConstraint) isReached() (bool, error) {
	value, err := c.value()
	if err != nil || value <= c.Goal.Floor {
		return false, err
	}
	c.Goal.Value = value
	return true, nil
}
