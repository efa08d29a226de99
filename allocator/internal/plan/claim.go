// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// resolvedClaim holds the definitions and the content of a claim with CEL constraints or preferences, for all nodes. A claim
// without them has a nil resolvedClaim.
type resolvedClaim struct {
	constraints func() (*definitions, error)
	content     func() (fingerprint.Sum, bool)
}

// resolvedClaims caches resolved claims by pointer, because the claims of a pod are the same objects for every node. Decoding
// and resolving a claim takes longer than many searches.
type resolvedClaims struct {
	ByClaim sync.Map // *resourceapi.ResourceClaim -> *resolvedClaim
	// ByContent holds claims for extended resources. The scheduler makes one for each node, and most differ only in the node's
	// name.
	ByContent sync.Map // fingerprint.Sum -> *resolvedClaim
}

// Resolved returns the resolved claim, or nil for a claim without CEL constraints and preferences. It does not cache nil for a
// temporary claim, because the scheduler makes a temporary claim for each node.
func (a *Planner) Resolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	if known, ok := a.ResolvedClaims.ByClaim.Load(claim); ok {
		return known.(*resolvedClaim)
	}
	isTemporary := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true"
	if !a.CELConstraints || !v1alpha1.HasConstraints(claim, a.hasDefaults) && !a.hasPreference(claim) {
		if !isTemporary && len(claim.Spec.Devices.Config) > 0 {
			// Cache that the configuration has no constraints. Searching a large configuration for each node would take too long.
			a.ResolvedClaims.ByClaim.Store(claim, (*resolvedClaim)(nil))
		}
		return nil
	}
	if isTemporary {
		content, ok := contentOfTemporary(claim)
		if !ok {
			return a.newResolved(claim)
		}
		return a.resolvedAt(&a.ResolvedClaims.ByContent, content, claim)
	}
	return a.resolvedAt(&a.ResolvedClaims.ByClaim, claim, claim)
}

func (a *Planner) resolvedAt(known *sync.Map, key any, claim *resourceapi.ResourceClaim) *resolvedClaim {
	if resolved, ok := known.Load(key); ok {
		return resolved.(*resolvedClaim)
	}
	resolved, _ := known.LoadOrStore(key, a.newResolved(claim))
	return resolved.(*resolvedClaim)
}

func (a *Planner) newResolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	r := &resolvedClaim{constraints: sync.OnceValues(func() (*definitions, error) { return resolveDefinitions(a, claim) })}
	r.content = sync.OnceValues(func() (fingerprint.Sum, bool) {
		content, ok := definition.ContentOfClaim(a.Prepared, a.Classes, claim)
		if !ok {
			return fingerprint.Sum{}, false
		}
		return r.withPreferences(a, content)
	})
	return r
}

// withPreferences extends the fingerprint of a claim by everything else that the claim's preferences depend on. Policies depend
// on the shapes of other claims, and the policy may come from the options.
func (r *resolvedClaim) withPreferences(a *Planner, content fingerprint.Sum) (fingerprint.Sum, bool) {
	definitions, err := r.Definitions()
	if err != nil {
		return fingerprint.Sum{}, false
	}
	all := content[:]
	for _, p := range definitions.Preferences {
		for _, shape := range p.Shapes {
			ofShape, ok := a.shapes.idle().Resolved(a.shapes.claimFor(shape)).fingerprint()
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

// contentOfTemporary returns the fingerprint of a claim for extended resources, without the name of the node. The fingerprint
// includes the name of the claim, because messages contain that name.
func contentOfTemporary(claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	content, ok := fingerprint.AppendMessage(fingerprint.AppendPart(fingerprint.AppendPart(nil, klog.KObj(claim).String()), v1alpha1.ContainersOf(claim)), &claim.Spec)
	return fingerprint.Of(content), ok
}

// hasDefaults reports whether a class has default constraints. It returns false for a class that can't be read, because the
// search for devices of the class reports that error.
func (a *Planner) hasDefaults(className string) bool {
	return a.Defaults && a.Classes.HasDefaults(className)
}

// hasPreference reports whether a preference covers one of the claim's requests.
func (a *Planner) hasPreference(claim *resourceapi.ResourceClaim) bool {
	prefers, prepared := a.Prepared.Prefers(claim)
	switch {
	case !a.Preferences:
		return false
	case a.Preference != "":
		return true
	case prepared:
		return prefers
	default:
		return v1alpha1.HasPreference(claim, a.Classes.HasPreferences)
	}
}

var noDefinitions = &definitions{}

// Definitions returns the constraints and preferences that apply to the claim.
func (r *resolvedClaim) Definitions() (*definitions, error) {
	if r == nil {
		return noDefinitions, nil
	}
	return r.constraints()
}

// fingerprint returns the fingerprint of everything in the claim that the result of an Allocate call depends on. ok is false if
// the fingerprint can't be computed.
func (r *resolvedClaim) fingerprint() (fingerprint.Sum, bool) {
	if r == nil {
		return fingerprint.Sum{}, false
	}
	return r.content()
}

// definitions holds the constraints and preferences of a claim.
type definitions struct {
	// Referred maps the index of a constraint of the claim to the CEL constraint that it refers to.
	Referred map[int]*definition.Definition
	// Defaults holds the default constraints of the classes, in the order of requests.
	Defaults []*definition.Definition
	// Preferences holds the preferences of the claim and of its classes, in order.
	Preferences []Preference
}

// Preference is an expression of type int, or a policy with the shapes that the policy depends on.
type Preference struct {
	*definition.Definition
	Shapes []shape.Shape
}

// resolveDefinitions returns the prepared definitions of a claim. If the claim was not prepared, it compiles them.
func resolveDefinitions(a *Planner, claim *resourceapi.ResourceClaim) (*definitions, error) {
	m := definition.PreparedDefinitions(a.Prepared, claim)
	if m == nil {
		var err error
		prefers := a.Preferences && v1alpha1.HasPreference(claim, a.Classes.HasPreferences)
		if m, err = definition.CompileClaim(a.compiling, a.Environment, claim, a.Classes, prefers); err != nil {
			return nil, err
		}
	}
	if m.ConstraintsErr != nil {
		return nil, m.ConstraintsErr
	}
	result := &definitions{Referred: make(map[int]*definition.Definition, len(m.Constraints))}
	for _, d := range m.Constraints {
		isDefault := d.Index == v1alpha1.NoReference
		switch {
		case isDefault && !a.Defaults:
		case d.Mistake != nil:
			return nil, d.Mistake
		case isDefault:
			result.Defaults = append(result.Defaults, d)
		default:
			result.Referred[d.Index] = d
		}
	}
	var err error
	result.Preferences, err = resolvePreferences(a, claim, m)
	return result, err
}

func resolvePreferences(a *Planner, claim *resourceapi.ResourceClaim, m *definition.ClaimDefinitions) ([]Preference, error) {
	if !a.Preferences {
		return nil, nil
	}
	if m.PreferencesErr != nil {
		return nil, m.PreferencesErr
	}
	var result []Preference
	add := func(d *definition.Definition) {
		p := Preference{Definition: d}
		if d.Policy != nil && d.Policy.ReadsShapes {
			p.Shapes = a.shapes.of(classesCovered(claim, d.API.Requests))
		}
		result = append(result, p)
	}
	for _, d := range m.Preferences {
		if d.Mistake != nil {
			return nil, d.Mistake
		}
		add(d)
	}
	if without := v1alpha1.RequestsWithout(claim, m.Defined); a.Preference != "" && len(without) > 0 {
		add(&definition.Definition{Name: defaultPreferenceName, Index: v1alpha1.NoReference, API: &resourceapi.DeviceConstraint{Requests: without}, Policy: v1alpha1.PolicyNamed(a.Preference)})
	}
	return result, nil
}

// defaultPreferenceName is the name of the preference for requests that no other preference covers.
const defaultPreferenceName = "default"

// classesCovered returns the classes of the named requests, or of all requests if names is empty.
func classesCovered(claim *resourceapi.ResourceClaim, names []string) sets.Set[string] {
	classes := sets.New[string]()
	for r := range requests.Each(claim) {
		if len(names) == 0 || r.IsNamed(names) {
			classes.Insert(r.Spec.DeviceClassName)
		}
	}
	return classes
}

// StepWeight returns the number of steps that the budget charges for one step of a search for this preference.
func (p *Preference) StepWeight() int64 {
	if p.Policy == nil {
		return 1
	}
	return p.Policy.StepWeight
}
