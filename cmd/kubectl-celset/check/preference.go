// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device/bound"
)

// preferences checks the preferences that apply to a claim.
func (c *checker) preferences(ctx context.Context, object *Object, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim) {
	preferences, err := carrier.Preferences()
	if err == nil {
		if resolved, err := carrier.ResolvePreferences(c.state.Classes()); err == nil {
			preferences = resolved
		}
	}
	for _, p := range preferences {
		covered := coveredRequests(&claim.Spec.Devices, p.Requests)
		found := newPreference(p)
		candidates := c.candidates(ctx, &found.Facts, claim, covered)
		c.value(ctx, object, &found, p.Source.String(), p, candidates, publishedBy(candidates))
		for _, on := range candidates {
			found.Nodes = append(found.Nodes, on.sets(covered))
		}
		object.Preferences = append(object.Preferences, found)
	}
}

func newPreference(p v1alpha1.Preference) Preference {
	return Preference{Name: p.Name, Source: p.Source.String(), Requests: p.Requests, Policy: p.Policy}
}

// value sets the facts about a preference's expression.
func (c *checker) value(ctx context.Context, object *Object, result *Preference, where string, p v1alpha1.Preference, candidates []candidates, has published) {
	if p.Policy != "" {
		return
	}
	expression, err := c.environment.CompileInt(ctx, p.Expression, p.Variables...)
	if err != nil {
		return
	}
	size := slices.Max(result.Devices)
	result.Read = bound.AnalyzeGoal(expression, size, false).Leading(devicesOf(candidates)) != nil
	result.describe(expression, size, candidates)
	c.origins(&result.Facts, candidates)
	c.attributes(expression, has, candidates, findings{object: object, where: where, name: p.Name, text: p.Expression})
}
