// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// resolvedClaim is what is found out about a claim with CEL constraints, once for all nodes.
// That of other claims is nil.
type resolvedClaim struct {
	constraints func() (*definitions, error)
	content     func() (fingerprint.Sum, bool)
}

// resolvedClaims are remembered by pointer: the claims of a pod are the same objects for every
// node, and decoding and resolving them costs more than many a search.
type resolvedClaims struct {
	byClaim sync.Map // *resourceapi.ResourceClaim -> *resolvedClaim
	// byContent has those that were made for one node, which are as many as there are nodes, and
	// differ only in what a node has without a claim.
	byContent sync.Map // fingerprint.Sum -> *resolvedClaim
}

// resolved is nil for a claim without CEL constraints and preferences: those made for one node would
// pile up.
func (a *planner) resolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	if known, ok := a.resolvedClaims.byClaim.Load(claim); ok {
		return known.(*resolvedClaim)
	}
	isTemporary := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true"
	if !a.celConstraints || !v1alpha1.HasConstraints(claim, a.hasDefaults) && !a.hasPreference(claim) {
		if !isTemporary && len(claim.Spec.Devices.Config) > 0 {
			// Large configurations are looked through once, not for each node.
			a.resolvedClaims.byClaim.Store(claim, (*resolvedClaim)(nil))
		}
		return nil
	}
	if isTemporary {
		content, ok := contentOfTemporary(claim)
		if !ok {
			return a.newResolved(claim)
		}
		return a.resolvedAt(&a.resolvedClaims.byContent, content, claim)
	}
	return a.resolvedAt(&a.resolvedClaims.byClaim, claim, claim)
}

func (a *planner) resolvedAt(known *sync.Map, key any, claim *resourceapi.ResourceClaim) *resolvedClaim {
	if resolved, ok := known.Load(key); ok {
		return resolved.(*resolvedClaim)
	}
	resolved, _ := known.LoadOrStore(key, a.newResolved(claim))
	return resolved.(*resolvedClaim)
}

func (a *planner) newResolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	r := &resolvedClaim{constraints: sync.OnceValues(func() (*definitions, error) { return resolveDefinitions(a, claim) })}
	r.content = sync.OnceValues(func() (fingerprint.Sum, bool) {
		content, ok := definition.ContentOfClaim(a.prepared, a.classes, claim)
		if !ok {
			return fingerprint.Sum{}, false
		}
		return r.withPreferences(a, content)
	})
	return r
}

// withPreferences adds to the content of a claim what its preferences depend on besides: policies know of other claims,
// and which policy it is may come from the options.
func (r *resolvedClaim) withPreferences(a *planner, content fingerprint.Sum) (fingerprint.Sum, bool) {
	definitions, err := r.definitions()
	if err != nil {
		return fingerprint.Sum{}, false
	}
	all := content[:]
	for _, p := range definitions.preferences {
		for _, shape := range p.shapes {
			ofShape, ok := a.shapes.idle().resolved(a.shapes.claimFor(shape)).fingerprint()
			if !ok {
				return fingerprint.Sum{}, false
			}
			all = append(all, ofShape[:]...)
		}
		if p.Policy != nil {
			all = fingerprint.AppendPart(fingerprint.AppendPart(all, p.Name), []byte(p.Policy.Name))
		}
	}
	if len(all) == len(content) {
		return content, true
	}
	return fingerprint.Of(all), true
}

// contentOfTemporary is what a claim for extended resources is told by. Messages name it.
func contentOfTemporary(claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	content, ok := fingerprint.AppendMessage(fingerprint.AppendPart(fingerprint.AppendPart(nil, klog.KObj(claim).String()), v1alpha1.ContainersOf(claim)), &claim.Spec)
	return fingerprint.Of(content), ok
}

// hasDefaults reports whether a class has constraints by default. One that can't be read has none:
// whoever looks for its devices says so.
func (a *planner) hasDefaults(className string) bool {
	return a.defaults && a.classes.HasDefaults(className)
}

// hasPreference reports whether a preference is about the claim.
func (a *planner) hasPreference(claim *resourceapi.ResourceClaim) bool {
	prefers, prepared := a.prepared.Prefers(claim)
	switch {
	case !a.preferences:
		return false
	case a.preference != "":
		return true
	case prepared:
		return prefers
	default:
		return v1alpha1.HasPreference(claim, a.classes.HasPreferences)
	}
}

var noDefinitions = &definitions{}

// definitions are the CEL constraints that hold for the claim.
func (r *resolvedClaim) definitions() (*definitions, error) {
	if r == nil {
		return noDefinitions, nil
	}
	return r.constraints()
}

// fingerprint is that of all that an answer depends on. It is false if that can't be told.
func (r *resolvedClaim) fingerprint() (fingerprint.Sum, bool) {
	if r == nil {
		return fingerprint.Sum{}, false
	}
	return r.content()
}

// definitions are what holds for a claim.
type definitions struct {
	// referred are the constraints to which a constraint of the claim refers, by its index.
	referred map[int]*definition.Definition
	// defaults are those that hold because of the class of a request, in the order of requests.
	defaults []*definition.Definition
	// preferences are those of the claim and of its classes, in order.
	preferences []preference
}

// preference is a definition of type int, or a policy with the shapes that matter to it.
type preference struct {
	*definition.Definition
	shapes []shape.Shape
}

// resolveDefinitions takes what was prepared, or compiles it.
func resolveDefinitions(a *planner, claim *resourceapi.ResourceClaim) (*definitions, error) {
	m := definition.MeaningOfPrepared(a.prepared, claim)
	if m == nil {
		var err error
		prefers := a.preferences && v1alpha1.HasPreference(claim, a.classes.HasPreferences)
		if m, err = definition.MeaningOf(a.compiling, a.environment, claim, a.classes, prefers); err != nil {
			return nil, err
		}
	}
	if m.ConstraintsErr != nil {
		return nil, m.ConstraintsErr
	}
	result := &definitions{referred: make(map[int]*definition.Definition, len(m.Constraints))}
	for _, d := range m.Constraints {
		isDefault := d.Index == v1alpha1.NoReference
		switch {
		case isDefault && !a.defaults:
		case d.Mistake != nil:
			return nil, d.Mistake
		case isDefault:
			result.defaults = append(result.defaults, d)
		default:
			result.referred[d.Index] = d
		}
	}
	var err error
	result.preferences, err = resolvePreferences(a, claim, m)
	return result, err
}

func resolvePreferences(a *planner, claim *resourceapi.ResourceClaim, m *definition.Meaning) ([]preference, error) {
	if !a.preferences {
		return nil, nil
	}
	if m.PreferencesErr != nil {
		return nil, m.PreferencesErr
	}
	var result []preference
	add := func(d *definition.Definition) {
		p := preference{Definition: d}
		if d.Policy != nil && d.Policy.ReadsShapes {
			p.shapes = a.shapes.of(classesCovered(claim, d.API.Requests))
		}
		result = append(result, p)
	}
	for _, d := range m.Preferences {
		if d.Mistake != nil {
			return nil, d.Mistake
		}
		add(d)
	}
	if without := v1alpha1.RequestsWithout(claim, m.Defined); a.preference != "" && len(without) > 0 {
		add(&definition.Definition{Name: defaultPreferenceName, Index: v1alpha1.NoReference, API: &resourceapi.DeviceConstraint{Requests: without}, Policy: v1alpha1.PolicyNamed(a.preference)})
	}
	return result, nil
}

// defaultPreferenceName is what the preference is called that holds where nobody defines one.
const defaultPreferenceName = "default"

// classesCovered are the names of the classes of the named requests, of all requests if there are no names.
func classesCovered(claim *resourceapi.ResourceClaim, names []string) sets.Set[string] {
	classes := sets.New[string]()
	for r := range requests.Each(claim) {
		if len(names) == 0 || r.IsNamed(names) {
			classes.Insert(r.Spec.DeviceClassName)
		}
	}
	return classes
}

// stepWeight returns the number of steps of the budget that one step costs.
func (p *preference) stepWeight() int64 {
	if p.Policy == nil {
		return 1
	}
	return p.Policy.StepWeight
}
