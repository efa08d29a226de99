// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// definition is a CEL constraint or a preference of a claim, decoded and compiled. It is not modified.
type definition struct {
	// name is what messages call it.
	name string
	// index is that of the constraint of the claim that refers to it, [v1alpha1.NoReference] if there is none.
	index int
	// api has the requests that it is about.
	api *resourceapi.DeviceConstraint
	// expression is nil for a policy, and if there is a mistake in it.
	expression *device.Expression
	// failurePolicy is no part of the key: it is about what is made of a failure, which is not kept
	// under the key.
	failurePolicy v1alpha1.FailurePolicy
	// policy is nil for an expression.
	policy *v1alpha1.Policy
	key    expressionKey
	// reads is what the expression reads.
	reads view.ReadSet
	// mistake is what is wrong with the expression.
	mistake error
}

// meaning is what the configuration of a claim and of its classes says. It depends on nothing else,
// and is not modified.
type meaning struct {
	constraints, preferences []*definition
	// defined are the preferences.
	defined []v1alpha1.Preference
	// constraintsErr and preferencesErr are why there are none.
	constraintsErr, preferencesErr error
}

// compiler compiles definitions for the tenant of the context.
type compiler struct {
	ctx         context.Context
	environment *device.Environment
	claim       *resourceapi.ResourceClaim
}

// meaningOf compiles for the tenant of the context, whose end is the only error. Preferences are left
// out where there are none to be seen.
func meaningOf(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter, preferences bool) (*meaning, error) {
	m, compile := &meaning{}, compiler{ctx, environment, claim}
	var constraints []v1alpha1.Constraint
	constraints, m.constraintsErr = v1alpha1.Resolve(claim, classes)
	for i := range constraints {
		c := &constraints[i]
		d := &definition{name: c.Label(), index: c.Index, api: &resourceapi.DeviceConstraint{Requests: c.Requests}, failurePolicy: c.FailurePolicy}
		if err := compile.add(d, environment.Compile, "constraint", c.Name, c.Source, c.Expression, c.Variables); err != nil {
			return nil, err
		}
		m.constraints = append(m.constraints, d)
	}
	if !preferences {
		return m, nil
	}
	m.defined, m.preferencesErr = v1alpha1.ResolvePreferences(claim, classes)
	for i := range m.defined {
		p := &m.defined[i]
		d := &definition{name: p.Label(), index: v1alpha1.NoReference, api: &resourceapi.DeviceConstraint{Requests: p.Requests}, policy: v1alpha1.PolicyNamed(p.Policy), failurePolicy: v1alpha1.FailurePolicyFail}
		d.key.isGoal = true
		if p.Policy == "" {
			if err := compile.add(d, environment.CompileInt, "preference", p.Name, p.Source, p.Expression, p.Variables); err != nil {
				return nil, err
			}
		}
		m.preferences = append(m.preferences, d)
	}
	return m, nil
}

// add adds the expression, or the mistake in it. The error is about no expression.
func (c *compiler) add(d *definition, compile func(context.Context, string, ...v1alpha1.Variable) (*device.Expression, error),
	kind, name string, source v1alpha1.Source, text string, variables []v1alpha1.Variable,
) error {
	expression, err := compile(c.ctx, text, variables...)
	d.key = newExpressionKey(c.environment, text, variables, d.key.isGoal)
	if err == nil {
		d.expression, d.reads = expression, view.NewReadSet(expression.ReadSet())
		return nil
	}
	if _, ok := errors.AsType[*cel.Error](err); !ok {
		return err
	}
	d.mistake = fmt.Errorf("claim %s, %s %s (%s): %w", klog.KObj(c.claim), kind, name, source, err)
	return nil
}

// analyze reads what constraints and preferences say of sets as the claim asks for, for the tenant of the context,
// whose end is the only error. What is left out is read when a search needs it.
func (m *meaning) analyze(ctx context.Context, claim *resourceapi.ResourceClaim) error {
	for _, d := range slices.Concat(m.constraints, m.preferences) {
		if d.expression == nil {
			continue
		}
		for _, shape := range setShapes(claim, d.api.Requests) {
			end, err := cel.TakeTurn(ctx)
			if err != nil {
				return err
			}
			analysisOf(d, shape)
			end()
		}
	}
	return nil
}

// maxShapes is of how many shapes the sets of a claim are taken to be: those of others are rare.
const maxShapes = 8

// setShapes are those of the sets that the named requests of a claim may get, all requests if there are no names. How
// many devices a request for all of them gets depends on the node: there are no shapes then.
func setShapes(claim *resourceapi.ResourceClaim, names []string) []setShape {
	// covered is how many requests a set is for, as far as that matters.
	type sum struct{ devices, covered int }
	sums := map[sum]bool{{}: true}
	for order := range claim.Spec.Devices.Requests {
		next := map[sum]bool{}
		for i := range requests.Alternatives(&claim.Spec.Devices.Requests[order]) {
			r := requests.New(claim, order, i)
			if r.Spec == nil {
				return nil
			}
			named := len(names) == 0 || r.IsNamed(names)
			if named && r.WantsAll() {
				return nil
			}
			for s := range sums {
				if named {
					s.devices, s.covered = s.devices+int(min(r.Spec.Count, MaxSetSize+1)), min(2, s.covered+1)
				}
				if s.devices <= MaxSetSize && len(next) < maxShapes {
					next[s] = true
				}
			}
		}
		sums = next
	}
	shapes := map[setShape]bool{}
	for s := range sums {
		if s.devices > 0 {
			shapes[setShape{s.devices, s.covered == 1}] = true
		}
	}
	return slices.Collect(maps.Keys(shapes))
}

// MaxSetSize is how large a set may be at most.
const MaxSetSize = 256
