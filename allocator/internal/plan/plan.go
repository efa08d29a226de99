// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan prepares searches and keeps what they find out.
//
//  1. A [Planner] has what all calls share: options, slices, classes and the state of allocation.
//  2. A [Plan] is made once for the claims of a pod: the attributes that they read, and what an answer depends on.
//  3. [OnNode] is a plan on a node: its candidates, which of them are in use, and the view, which is the devices as
//     expressions see them. It asks the cache for tables and answers.
//
// If the cache has no answer, a search is set up from the plan on the node.
package plan

import (
	"encoding/binary"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
)

// Plan is made once for the claims of a pod, whatever the node.
type Plan struct {
	Planner *Planner
	Claims  []*resourceapi.ResourceClaim
	// reads returns the attributes that an allocation for the claims reads, by reader, and read returns their union.
	reads func() reads
	Read  func() view.ReadSet
	// content is what an answer depends on of claims that all have CEL constraints or preferences. It is false for
	// others, and if that can't be told.
	content func() (fingerprint.Sum, bool)
}

// PlanFor is the plan that was made last, if it was for these claims: those of a pod are the same objects for one
// node after the other.
func (a *Planner) PlanFor(claims []*resourceapi.ResourceClaim) *Plan {
	if last := a.lastPlan.Load(); last != nil && slices.Equal(last.Claims, claims) {
		return last
	}
	p := &Plan{Planner: a, Claims: slices.Clone(claims)}
	p.reads, p.content = sync.OnceValue(p.findReads), sync.OnceValues(p.fingerprint)
	p.Read = sync.OnceValue(func() view.ReadSet { return p.reads().all() })
	a.lastPlan.Store(p)
	return p
}

// Reading returns a plan for the same claims whose constraints read more attributes, so that devices which differ in these count
// as different. Its answers are not kept.
func (p *Plan) Reading(more view.ReadSet) *Plan {
	other := &Plan{Planner: p.Planner, Claims: p.Claims, content: func() (fingerprint.Sum, bool) { return fingerprint.Sum{}, false }}
	other.reads = sync.OnceValue(func() reads {
		result := p.reads()
		result.constraints = result.constraints.With(more)
		return result
	})
	other.Read = sync.OnceValue(func() view.ReadSet { return other.reads().all() })
	return other
}

// ReadByConstraints returns the attributes that constraints read, and preferences if they count.
func (p *Plan) ReadByConstraints(preferences bool) view.ReadSet {
	read := p.reads()
	if preferences {
		return read.constraints.With(read.preferences)
	}
	return read.constraints
}

func (p *Plan) findReads() reads {
	var result reads
	for _, claim := range p.Claims {
		result.add(p.Planner.readByClaim(claim))
	}
	return result
}

// reads has the attributes that claims read: by their constraints, their preferences and their selectors.
type reads struct{ constraints, preferences, selectors view.ReadSet }

func (r *reads) add(other reads) {
	r.constraints, r.preferences, r.selectors = r.constraints.With(other.constraints), r.preferences.With(other.preferences), r.selectors.With(other.selectors)
}

func (r reads) all() view.ReadSet { return r.constraints.With(r.preferences).With(r.selectors) }

func (p *Plan) fingerprint() (fingerprint.Sum, bool) {
	if len(p.Claims) == 1 {
		return p.Planner.Resolved(p.Claims[0]).fingerprint()
	}
	var all []byte
	for _, claim := range p.Claims {
		content, ok := p.Planner.Resolved(claim).fingerprint()
		if !ok {
			return fingerprint.Sum{}, false
		}
		// A reason names the claim.
		all = fingerprint.AppendPart(append(all, content[:]...), []byte(claim.Name))
	}
	return fingerprint.Of(all), len(p.Claims) > 0
}

// isConstrained reports whether a claim has a CEL constraint or a preference.
func (p *Plan) isConstrained() bool {
	return slices.ContainsFunc(p.Claims, func(claim *resourceapi.ResourceClaim) bool { return p.Planner.Resolved(claim) != nil })
}

// OnNode is a plan on a node.
type OnNode struct {
	*Plan
	Node      *v1.Node
	Inventory *inventory.Inventory
	// Allocated are the devices that are in use.
	Allocated bitset.Set
	// seen is the view of the node, nil until it was asked for.
	seen *view.View
}

// On takes stock of a node.
func (p *Plan) On(node *v1.Node) (OnNode, error) {
	has, err := p.Planner.InventoryOf(node)
	if err != nil {
		return OnNode{}, err
	}
	return p.With(node, has, p.Planner.State.Of(has.Candidates)), nil
}

// OnIdle returns the plan on a node of which nothing is in use.
func (p *Plan) OnIdle(node *v1.Node, has *inventory.Inventory) OnNode {
	return p.With(node, has, bitset.New(len(has.Candidates)))
}

// With returns the plan on a node with these devices, of which some are in use.
func (p *Plan) With(node *v1.Node, has *inventory.Inventory, allocated bitset.Set) OnNode {
	return OnNode{Plan: p, Node: node, Inventory: has, Allocated: allocated}
}

// FailureHere returns the failure as one on this node.
func (n *OnNode) FailureHere(e *answer.Error) *answer.Error {
	return answer.OnNode(e, n.Node, n.Claims, n.Inventory.Candidates)
}

// InventoryOf takes stock of a node.
func (a *Planner) InventoryOf(node *v1.Node) (*inventory.Inventory, error) {
	return a.inventories.Of(a.Features, node, a.allSlices)
}

// viewID is that of the node's devices as the claims see them.
func (n *OnNode) viewID() view.ID { return view.IDOf(n.Inventory, n.Read()) }

// answerKey is false if the answer may depend on more than a key says: on other things of devices than attributes and
// capacities, or on who shares them.
func (n *OnNode) answerKey() (key answerKey, ok bool) {
	a := n.Planner
	if a.Unbounded || a.Acceptance != nil || !n.Inventory.IsPlain ||
		a.State.HasShared() && slices.ContainsFunc(n.Inventory.Candidates, func(c *inventory.Candidate) bool { return a.State.IsShared(c.ID) }) {
		return answerKey{}, false
	}
	content, ok := n.content()
	if !ok {
		return answerKey{}, false
	}
	var memory [32]byte
	inUse := memory[:0]
	for _, word := range n.Allocated {
		inUse = binary.LittleEndian.AppendUint64(inUse, word)
	}
	return answerKey{
		view: n.viewID(), features: a.Features, environment: a.Environment, claims: content,
		costBudget: a.CostBudget, stepBudget: a.StepBudget, preferences: budget.Budget{Cost: a.PreferenceCost, Steps: a.PreferenceSteps},
		prefers: a.Preferences, reasons: a.Reasons, inUse: string(inUse),
	}, true
}

// AnswerEntry is where the answer is kept, nil if it is not.
func (n *OnNode) AnswerEntry() *AnswerEntry {
	if key, ok := n.answerKey(); ok {
		return n.Planner.Cache.answers.At(key)
	}
	return nil
}

// KnownRefusal is the answer for claims that are known not to fit on such a node, else nil.
// Of a cluster's nodes most may refuse a pod: that takes no search to be set up, and none of
// the checks that a search begins with, because a search with the same key has passed them.
func KnownRefusal(kept *AnswerEntry) *answer.Answer {
	if kept == nil {
		return nil
	}
	if known := kept.Look(); known != nil && !known.Found {
		return known
	}
	return nil
}

func (a *Planner) readByClaim(claim *resourceapi.ResourceClaim) reads {
	result := a.readByDefinitions(claim)
	add := func(class string, own []resourceapi.DeviceSelector, derived []compat.DerivedAttribute) {
		if len(derived) > 0 {
			// Constraints see them, too.
			result.constraints = view.AnyAttribute
		}
		result.selectors = result.selectors.With(a.readByRequest(class, own))
	}
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if exactly := r.Exactly; exactly != nil {
			add(exactly.DeviceClassName, exactly.Selectors, compat.DerivedAttributes(exactly))
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			add(sub.DeviceClassName, sub.Selectors, compat.DerivedAttributesOf(sub))
		}
	}
	return result
}

// readByDefinitions returns the attributes that the constraints and preferences of a claim and of its classes read.
func (a *Planner) readByDefinitions(claim *resourceapi.ResourceClaim) (result reads) {
	definitions, err := a.Resolved(claim).Definitions()
	if err != nil {
		return reads{constraints: view.AnyAttribute}
	}
	for i, constraint := range claim.Spec.Devices.Constraints {
		read := view.AnyAttribute
		switch d := definitions.Referred[i]; {
		case d != nil:
			read = d.Reads
		case constraint.MatchAttribute != nil:
			read = view.ReadAttribute(*constraint.MatchAttribute)
		case constraint.DistinctAttribute != nil:
			read = view.ReadAttribute(*constraint.DistinctAttribute)
		}
		result.constraints = result.constraints.With(read)
	}
	for _, d := range definitions.Defaults {
		result.constraints = result.constraints.With(d.Reads)
	}
	for _, p := range definitions.Preferences {
		result.preferences = result.preferences.With(p.Reads)
		for _, shape := range p.Shapes {
			ofShape := a.shapes.idle().readByClaim(a.shapes.claimFor(shape))
			result.preferences = result.preferences.With(ofShape.all())
		}
	}
	return result
}

func (a *Planner) readByRequest(className string, selectors []resourceapi.DeviceSelector) view.ReadSet {
	class, err := a.Classes.Get(className)
	if err != nil {
		return view.AnyAttribute
	}
	return a.ReadBy(class, selectors)
}

func (a *Planner) readBySelectors(selectors []resourceapi.DeviceSelector) view.ReadSet {
	var read view.ReadSet
	for _, selector := range selectors {
		if selector.CEL == nil {
			return view.AnyAttribute
		}
		read = read.With(a.readBySelector(selector.CEL.Expression))
	}
	return read
}

// readBySelector compiles the selector once more, because what it was compiled to is not to
// be had any more.
func (a *Planner) readBySelector(expression string) view.ReadSet {
	if read, known := definition.ReadByPrepared(a.Prepared, expression); known {
		return read
	}
	return definition.ReadBySelector(expression, func() view.ReadSet {
		if compiled := a.Selectors.GetOrCompile(expression); compiled.Error == nil {
			if checked, issues := compiled.Environment.Compile(expression); issues.Err() == nil {
				return view.NewReadSet(device.ReadSetOf(checked.NativeRep()))
			}
		}
		return view.AnyAttribute
	})
}

// ReadBy returns the attributes that the selectors of a class and of a request read.
func (a *Planner) ReadBy(class *resourceapi.DeviceClass, own []resourceapi.DeviceSelector) view.ReadSet {
	return a.readBySelectors(class.Spec.Selectors).With(a.readBySelectors(own))
}
