// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/requests"
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

func resolveDefinitions(a *Allocator, claim *resourceapi.ResourceClaim) (*definitions, error) {
	resolved, err := v1alpha1.Resolve(claim, a.classes)
	if err != nil {
		return nil, err
	}
	result := &definitions{referred: make(map[int]*definition, len(resolved))}
	for i := range resolved {
		constraint := &resolved[i]
		if constraint.Default && !a.defaults {
			continue
		}
		expression, err := a.environment.Compile(context.Background(), constraint.Expression, constraint.Variables...)
		if err != nil {
			return nil, fmt.Errorf("claim %s, constraint %s (%s): %w", klog.KObj(claim), constraint.Name, constraint.Source, err)
		}
		d := &definition{
			name:       constraint.Label(),
			expression: expression,
			onError:    constraint.OnError,
			key:        newExpressionKey(a.environment, constraint.Expression, constraint.Variables, false),
		}
		if constraint.Default {
			api := &resourceapi.DeviceConstraint{Requests: constraint.Requests}
			result.defaults = append(result.defaults, defaultDefinition{d, api})
		} else {
			result.referred[constraint.Index] = d
		}
	}
	result.preferences, err = resolvePreferences(a, claim)
	return result, err
}

func resolvePreferences(a *Allocator, claim *resourceapi.ResourceClaim) ([]preference, error) {
	if !a.preferences {
		return nil, nil
	}
	var resolved []v1alpha1.Preference
	if v1alpha1.HasPreference(claim, a.classes.hasPreferences) {
		var err error
		if resolved, err = v1alpha1.ResolvePreferences(claim, a.classes); err != nil {
			return nil, err
		}
	}
	if without := v1alpha1.RequestsWithout(claim, resolved); a.preference != "" && len(without) > 0 {
		resolved = append(resolved, v1alpha1.Preference{Name: defaultPreferenceName, Policy: a.preference, Requests: without})
	}
	var result []preference
	for i := range resolved {
		p := &resolved[i]
		api := &resourceapi.DeviceConstraint{Requests: p.Requests}
		if p.Policy != "" {
			result = append(result, preference{name: p.Label(), api: api, policy: p.Policy, shapes: a.shapes.of(classesCovered(claim, p))})
			continue
		}
		expression, err := a.environment.CompileInt(context.Background(), p.Expression, p.Variables...)
		if err != nil {
			return nil, fmt.Errorf("claim %s, preference %s (%s): %w", klog.KObj(claim), p.Name, p.Source, err)
		}
		d := &definition{
			name:       p.Label(),
			expression: expression,
			onError:    v1alpha1.OnErrorAbort,
			key:        newExpressionKey(a.environment, p.Expression, p.Variables, true),
		}
		result = append(result, preference{name: d.name, definition: d, api: api})
	}
	return result, nil
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
