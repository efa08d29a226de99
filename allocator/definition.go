// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// definition is a CEL constraint of a claim, found and compiled.
type definition struct {
	// name is what messages call it.
	name       string
	expression *device.Expression
	// onError is no part of the key: it is about what is made of a failure, which is not kept
	// under the key.
	onError v1alpha1.OnError
	key     expressionKey
	// reads is what the expression reads.
	reads view.ReadSet
}

// definitions are the CEL constraints of a claim.
type definitions struct {
	// referred are those to which a constraint of the claim refers, by its index.
	referred map[int]*definition
	// defaults are those that hold because of the class of a request, in the order of requests.
	defaults []defaultDefinition
	// preferences are those of the claim and of its classes, in order.
	preferences []preference
}

// preference is a definition of type int, or a policy, and the requests that it is about.
type preference struct {
	name string
	*definition
	api *resourceapi.DeviceConstraint
	// policy has no definition, and shapes.
	policy v1alpha1.PreferencePolicy
	shapes []Shape
}

// defaultDefinition is a definition with the constraint that the claim would have if it
// referred to it.
type defaultDefinition struct {
	*definition
	api *resourceapi.DeviceConstraint
}

// resolveDefinitions takes what was prepared, or compiles it.
func resolveDefinitions(a *Allocator, claim *resourceapi.ResourceClaim) (*definitions, error) {
	var m *meaning
	if prepared := a.prepared.of(claim); prepared != nil {
		m = prepared.meaning
	} else {
		var err error
		prefers := a.preferences && v1alpha1.HasPreference(claim, a.classes.hasPreferences)
		if m, err = meaningOf(a.compiling, a.environment, claim, a.classes, prefers); err != nil {
			return nil, err
		}
	}
	if m.constraintsErr != nil {
		return nil, m.constraintsErr
	}
	result := &definitions{referred: make(map[int]*definition, len(m.constraints))}
	for i := range m.constraints {
		c := &m.constraints[i]
		switch {
		case c.of.Default && !a.defaults:
		case c.err != nil:
			return nil, c.err
		case c.of.Default:
			api := &resourceapi.DeviceConstraint{Requests: c.of.Requests}
			result.defaults = append(result.defaults, defaultDefinition{&definition{c.of.Label(), c.expression, c.of.OnError, c.key, c.reads}, api})
		default:
			result.referred[c.of.Index] = &definition{c.of.Label(), c.expression, c.of.OnError, c.key, c.reads}
		}
	}
	var err error
	result.preferences, err = resolvePreferences(a, claim, m)
	return result, err
}

func resolvePreferences(a *Allocator, claim *resourceapi.ResourceClaim, m *meaning) ([]preference, error) {
	if !a.preferences {
		return nil, nil
	}
	if m.preferencesErr != nil {
		return nil, m.preferencesErr
	}
	var result []preference
	var defined []v1alpha1.Preference
	for i := range m.preferences {
		p := &m.preferences[i]
		if p.err != nil {
			return nil, p.err
		}
		defined = append(defined, p.of)
		if p.of.Policy != "" {
			result = append(result, a.policy(claim, p.of))
			continue
		}
		d := &definition{p.of.Label(), p.expression, v1alpha1.OnErrorAbort, p.key, p.reads}
		result = append(result, preference{name: d.name, definition: d, api: &resourceapi.DeviceConstraint{Requests: p.of.Requests}})
	}
	if without := v1alpha1.RequestsWithout(claim, defined); a.preference != "" && len(without) > 0 {
		result = append(result, a.policy(claim, v1alpha1.Preference{Name: defaultPreferenceName, Policy: a.preference, Requests: without}))
	}
	return result, nil
}

// policy is a preference without an expression.
func (a *Allocator) policy(claim *resourceapi.ResourceClaim, p v1alpha1.Preference) preference {
	return preference{
		name: p.Label(), api: &resourceapi.DeviceConstraint{Requests: p.Requests},
		policy: p.Policy, shapes: a.shapes.of(classesCovered(claim, &p)),
	}
}

// defaultPreferenceName is what the preference is called that holds where nobody defines one.
const defaultPreferenceName = "default"

// classesCovered are the names of the classes of the requests that a preference is about.
func classesCovered(claim *resourceapi.ResourceClaim, p *v1alpha1.Preference) sets.Set[string] {
	names := sets.New[string]()
	for order := range claim.Spec.Devices.Requests {
		for i := range requests.Alternatives(&claim.Spec.Devices.Requests[order]) {
			r := requests.New(claim, order, i)
			if len(p.Requests) == 0 || r.IsNamed(p.Requests) {
				names.Insert(r.Spec.DeviceClassName)
			}
		}
	}
	return names
}

// CheckConstraints finds out, without looking at any device, whether the CEL
// constraints of the claims are defined, and whether they and the preferences that are about the
// claims are well-formed and compile.
func (a *Allocator) CheckConstraints(claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		if _, err := a.resolved(claim).definitions(); err != nil {
			return err
		}
	}
	return nil
}
