// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

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

// Plan holds the properties of a pod's claims that don't depend on the node.
type Plan struct {
	Planner *Planner
	Claims  []*resourceapi.ResourceClaim
	// reads returns the attributes that the constraints, preferences and selectors of the claims read. Read returns the union.
	reads func() reads
	Read  func() view.ReadSet
	// content returns the fingerprint of the claims. ok is false if a claim has neither CEL constraints nor preferences, or if
	// the fingerprint of a claim can't be computed.
	content func() (fingerprint.Sum, bool)
}

// PlanFor returns a plan for the claims. It reuses the last plan if the objects are the same, as for all nodes of a pod.
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

// Reading returns a plan for the same claims that treats the attributes in more as read by constraints. So the search
// distinguishes devices that differ only in these attributes. Results for this plan are not cached.
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

// ReadByConstraints returns the attributes that constraints read and, if preferences is true, that preferences read.
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

// reads holds the attributes that the constraints, the preferences and the selectors of claims read.
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
		// The key contains the name of the claim because reasons contain it.
		all = fingerprint.AppendPart(append(all, content[:]...), []byte(claim.Name))
	}
	return fingerprint.Of(all), len(p.Claims) > 0
}

// isConstrained reports whether a claim has a CEL constraint or a preference.
func (p *Plan) isConstrained() bool {
	return slices.ContainsFunc(p.Claims, func(claim *resourceapi.ResourceClaim) bool { return p.Planner.Resolved(claim) != nil })
}

// OnNode is a plan together with the devices of one node.
type OnNode struct {
	*Plan
	Node      *v1.Node
	Inventory *inventory.Inventory
	// Allocated has a bit for each candidate, which is set if the device is in use.
	Allocated bitset.Set
	// cachedView is the view of the node. It is nil until the first call of View.
	cachedView *view.View
}

// On returns the plan on a node, with the node's current inventory and devices in use.
func (p *Plan) On(node *v1.Node) (OnNode, error) {
	has, err := p.Planner.InventoryOf(node)
	if err != nil {
		return OnNode{}, err
	}
	return p.With(node, has, p.Planner.State.Of(has.Candidates)), nil
}

// OnIdle returns the plan on a node with the given inventory and no device in use.
func (p *Plan) OnIdle(node *v1.Node, has *inventory.Inventory) OnNode {
	return p.With(node, has, bitset.New(len(has.Candidates)))
}

// With returns the plan on a node with the given inventory and devices in use.
func (p *Plan) With(node *v1.Node, has *inventory.Inventory, allocated bitset.Set) OnNode {
	return OnNode{Plan: p, Node: node, Inventory: has, Allocated: allocated}
}

// FailureHere returns a copy of the failure with the names of this node and its devices.
func (n *OnNode) FailureHere(e *answer.Error) *answer.Error {
	return answer.OnNode(e, n.Node, n.Claims, n.Inventory.Candidates)
}

// InventoryOf returns the inventory of a node.
func (a *Planner) InventoryOf(node *v1.Node) (*inventory.Inventory, error) {
	return a.inventories.Of(a.Features, node, a.allSlices)
}

// viewID returns the ID of the node's view for the attributes that the claims read.
func (n *OnNode) viewID() view.ID { return view.IDOf(n.Inventory, n.Read()) }

// answerKey returns the cache key for the result of an Allocate call. ok is false if the result may depend on something that
// the key does not contain: properties of devices other than attributes and capacities, or other users of shared devices.
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

// AnswerEntry returns the cache entry for the result of an Allocate call. It returns nil if such a result must not be cached.
func (n *OnNode) AnswerEntry() *AnswerEntry {
	if key, ok := n.answerKey(); ok {
		return n.Planner.Cache.answers.At(key)
	}
	return nil
}

// KnownRefusal returns the cached result if it says that the claims don't fit, and nil otherwise. Often most nodes of a cluster
// refuse a pod. A cached refusal needs no search and no checks, because a search with the same key has made the checks.
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
			// Constraints can read derived attributes, whose expressions may read any attribute.
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

// readBySelector returns the attributes that a selector reads. It compiles the selector a second time, because the cache of
// compiled selectors does not provide the syntax tree.
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
