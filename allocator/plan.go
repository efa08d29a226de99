// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

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

// A call takes this way: the plan for the claims, once for a pod; the plan on a node, which knows the view and
// what is in use; the answer, if the cache has it; and otherwise a search, which is set up from the plan on the
// node.

// plan is what is prepared once for the claims of a pod, whatever the node.
type plan struct {
	planner *planner
	claims  []*resourceapi.ResourceClaim
	// reads returns the attributes that an allocation for the claims reads, by reader, and read returns their union.
	reads func() reads
	read  func() view.ReadSet
	// content is what an answer depends on of claims that all have CEL constraints or preferences. It is false for
	// others, and if that can't be told.
	content func() (fingerprint.Sum, bool)
}

// planFor is the plan that was made last, if it was for these claims: those of a pod are the same objects for one
// node after the other.
func (a *planner) planFor(claims []*resourceapi.ResourceClaim) *plan {
	if last := a.lastPlan.Load(); last != nil && slices.Equal(last.claims, claims) {
		return last
	}
	p := &plan{planner: a, claims: slices.Clone(claims)}
	p.reads, p.content = sync.OnceValue(p.findReads), sync.OnceValues(p.fingerprint)
	p.read = sync.OnceValue(func() view.ReadSet { return p.reads().all() })
	a.lastPlan.Store(p)
	return p
}

// reading returns a plan for the same claims whose constraints read more attributes, so that devices which differ in these count
// as different. Its answers are not kept.
func (p *plan) reading(more view.ReadSet) *plan {
	other := &plan{planner: p.planner, claims: p.claims, content: func() (fingerprint.Sum, bool) { return fingerprint.Sum{}, false }}
	other.reads = sync.OnceValue(func() reads {
		result := p.reads()
		result.constraints = result.constraints.With(more)
		return result
	})
	other.read = sync.OnceValue(func() view.ReadSet { return other.reads().all() })
	return other
}

// readByConstraints returns the attributes that constraints read, and preferences if they count.
func (p *plan) readByConstraints(preferences bool) view.ReadSet {
	read := p.reads()
	if preferences {
		return read.constraints.With(read.preferences)
	}
	return read.constraints
}

func (p *plan) findReads() reads {
	var result reads
	for _, claim := range p.claims {
		result.add(p.planner.readByClaim(claim))
	}
	return result
}

// reads has the attributes that claims read: by their constraints, their preferences and their selectors.
type reads struct{ constraints, preferences, selectors view.ReadSet }

func (r *reads) add(other reads) {
	r.constraints, r.preferences, r.selectors = r.constraints.With(other.constraints), r.preferences.With(other.preferences), r.selectors.With(other.selectors)
}

func (r reads) all() view.ReadSet { return r.constraints.With(r.preferences).With(r.selectors) }

func (p *plan) fingerprint() (fingerprint.Sum, bool) {
	if len(p.claims) == 1 {
		return p.planner.resolved(p.claims[0]).fingerprint()
	}
	var all []byte
	for _, claim := range p.claims {
		content, ok := p.planner.resolved(claim).fingerprint()
		if !ok {
			return fingerprint.Sum{}, false
		}
		// A reason names the claim.
		all = fingerprint.AppendPart(append(all, content[:]...), []byte(claim.Name))
	}
	return fingerprint.Of(all), len(p.claims) > 0
}

// isConstrained reports whether a claim has a CEL constraint or a preference.
func (p *plan) isConstrained() bool {
	return slices.ContainsFunc(p.claims, func(claim *resourceapi.ResourceClaim) bool { return p.planner.resolved(claim) != nil })
}

// onNode is a plan on a node.
type onNode struct {
	*plan
	node      *v1.Node
	inventory *inventory.Inventory
	// allocated are the devices that are in use.
	allocated bitset.Set
	// seen is the view of the node, nil until it was asked for.
	seen *view.View
}

// on takes stock of a node.
func (p *plan) on(node *v1.Node) (onNode, error) {
	has, err := p.planner.inventoryOf(node)
	if err != nil {
		return onNode{}, err
	}
	return p.with(node, has, p.planner.state.Of(has.Candidates)), nil
}

// onIdle returns the plan on a node of which nothing is in use.
func (p *plan) onIdle(node *v1.Node, has *inventory.Inventory) onNode {
	return p.with(node, has, bitset.New(len(has.Candidates)))
}

// with returns the plan on a node with these devices, of which some are in use.
func (p *plan) with(node *v1.Node, has *inventory.Inventory, allocated bitset.Set) onNode {
	return onNode{plan: p, node: node, inventory: has, allocated: allocated}
}

// failureHere returns the failure as one on this node.
func (n *onNode) failureHere(e *answer.Error) *answer.Error {
	return answer.OnNode(e, n.node, n.claims, n.inventory.Candidates)
}

// inventoryOf takes stock of a node.
func (a *planner) inventoryOf(node *v1.Node) (*inventory.Inventory, error) {
	return a.inventories.Of(a.features, node, a.allSlices)
}

// viewID is that of the node's devices as the claims see them.
func (n *onNode) viewID() view.ID { return view.IDOf(n.inventory, n.read()) }

// answerKey is false if the answer may depend on more than a key says: on other things of devices than attributes and
// capacities, or on who shares them.
func (n *onNode) answerKey() (key answerKey, ok bool) {
	a := n.planner
	if a.unbounded || a.acceptance != nil || !n.inventory.IsPlain ||
		a.state.HasShared() && slices.ContainsFunc(n.inventory.Candidates, func(c *inventory.Candidate) bool { return a.state.IsShared(c.ID) }) {
		return answerKey{}, false
	}
	content, ok := n.content()
	if !ok {
		return answerKey{}, false
	}
	var memory [32]byte
	inUse := memory[:0]
	for _, word := range n.allocated {
		inUse = binary.LittleEndian.AppendUint64(inUse, word)
	}
	return answerKey{
		view: n.viewID(), features: a.features, environment: a.environment, claims: content,
		costBudget: a.costBudget, stepBudget: a.stepBudget, preferences: budget.Budget{a.preferenceCost, a.preferenceSteps},
		prefers: a.preferences, reasons: a.reasons, inUse: string(inUse),
	}, true
}

// answerEntry is where the answer is kept, nil if it is not.
func (n *onNode) answerEntry() *answerEntry {
	if key, ok := n.answerKey(); ok {
		return n.planner.cache.answers.At(key)
	}
	return nil
}

// knownRefusal is the answer for claims that are known not to fit on such a node, else nil.
// Of a cluster's nodes most may refuse a pod: that takes no search to be set up, and none of
// the checks that a search begins with, because a search with the same key has passed them.
func knownRefusal(kept *answerEntry) *answer.Answer {
	if kept == nil {
		return nil
	}
	if known := kept.Look(); known != nil && !known.Found {
		return known
	}
	return nil
}

func (a *planner) readByClaim(claim *resourceapi.ResourceClaim) reads {
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
func (a *planner) readByDefinitions(claim *resourceapi.ResourceClaim) (result reads) {
	definitions, err := a.resolved(claim).definitions()
	if err != nil {
		return reads{constraints: view.AnyAttribute}
	}
	for i, constraint := range claim.Spec.Devices.Constraints {
		read := view.AnyAttribute
		switch d := definitions.referred[i]; {
		case d != nil:
			read = d.Reads
		case constraint.MatchAttribute != nil:
			read = view.ReadAttribute(*constraint.MatchAttribute)
		case constraint.DistinctAttribute != nil:
			read = view.ReadAttribute(*constraint.DistinctAttribute)
		}
		result.constraints = result.constraints.With(read)
	}
	for _, d := range definitions.defaults {
		result.constraints = result.constraints.With(d.Reads)
	}
	for _, p := range definitions.preferences {
		result.preferences = result.preferences.With(p.Reads)
		for _, shape := range p.shapes {
			ofShape := a.shapes.idle().readByClaim(a.shapes.claimFor(shape))
			result.preferences = result.preferences.With(ofShape.all())
		}
	}
	return result
}

func (a *planner) readByRequest(className string, selectors []resourceapi.DeviceSelector) view.ReadSet {
	class, err := a.classes.Get(className)
	if err != nil {
		return view.AnyAttribute
	}
	return readSets{a}.ReadBy(class, selectors)
}

func (a *planner) readBySelectors(selectors []resourceapi.DeviceSelector) view.ReadSet {
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
func (a *planner) readBySelector(expression string) view.ReadSet {
	if read, known := definition.ReadByPrepared(a.prepared, expression); known {
		return read
	}
	return definition.ReadBySelector(expression, func() view.ReadSet {
		if compiled := a.selectors.GetOrCompile(expression); compiled.Error == nil {
			if checked, issues := compiled.Environment.Compile(expression); issues.Err() == nil {
				return view.NewReadSet(device.ReadSetOf(checked.NativeRep()))
			}
		}
		return view.AnyAttribute
	})
}

// readSets tells what selectors read.
type readSets struct{ planner *planner }

// ReadBy is what the selectors of a class and of a request read.
func (r readSets) ReadBy(class *resourceapi.DeviceClass, own []resourceapi.DeviceSelector) view.ReadSet {
	return r.planner.readBySelectors(class.Spec.Selectors).With(r.planner.readBySelectors(own))
}
