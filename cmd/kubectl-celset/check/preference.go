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

// preferences looks at those that hold for a claim.
func (c *checker) preferences(ctx context.Context, result *Object, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim) {
	preferences, err := carrier.Preferences()
	result.addErrors(err)
	if err == nil {
		resolved, err := carrier.ResolvePreferences(c.state.Classes())
		result.addErrors(err)
		if err == nil {
			preferences = resolved
		}
	}
	for _, p := range preferences {
		covered := coveredRequests(&claim.Spec.Devices, p.Requests)
		found := newPreference(p)
		candidates := c.candidates(ctx, &found.Facts, claim, covered)
		found.OneSet = covered.areAll()
		c.value(ctx, &found, p, candidates)
		for _, on := range candidates {
			found.Nodes = append(found.Nodes, on.sets(covered))
		}
		result.Preferences = append(result.Preferences, found)
	}
}

// classPreferences looks at those of a class: nobody says for how many devices they are.
func (c *checker) classPreferences(ctx context.Context, result *Object, class *resourceapi.DeviceClass) {
	preferences, err := v1alpha1.ClassPreferences(class)
	result.addErrors(err)
	for _, p := range preferences {
		found := newPreference(p)
		found.Devices, found.Assumed = []int{c.Count}, true
		c.value(ctx, &found, p, nil)
		result.Preferences = append(result.Preferences, found)
	}
}

func newPreference(p v1alpha1.Preference) Preference {
	return Preference{Name: p.Name, Source: p.Source.String(), Requests: p.Requests, Policy: p.Policy}
}

// value fills in what can be told of the expression.
func (c *checker) value(ctx context.Context, result *Preference, p v1alpha1.Preference, candidates []candidates) {
	if p.Policy != "" {
		return
	}
	expression, err := c.environment.CompileInt(ctx, p.Expression, p.Variables...)
	if err != nil {
		result.Error = expressionError(err)
		return
	}
	size := slices.Max(result.Devices)
	result.Read = bound.AnalyzeGoal(expression, size, false).Leading(devicesOf(candidates)) != nil
	result.tell(expression, size, candidates)
}

// areAll tells whether all devices of a node are wanted, whichever alternatives are taken.
func (c coverage) areAll() bool {
	for _, request := range c {
		if slices.ContainsFunc(request.alternatives, func(a alternative) bool { return !a.all }) {
			return false
		}
	}
	return len(c) > 0
}
