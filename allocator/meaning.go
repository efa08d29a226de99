// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// meaning is what the configuration of a claim and of its classes says, decoded and compiled. It
// depends on nothing else, and is not modified.
type meaning struct {
	constraints []compiled[v1alpha1.Constraint]
	preferences []compiled[v1alpha1.Preference]
	// constraintsErr and preferencesErr are why there are none.
	constraintsErr, preferencesErr error
}

// compiled is a constraint or a preference with its expression, or with what is wrong with that. A
// policy has neither.
type compiled[T any] struct {
	of         T
	expression *device.Expression
	key        expressionKey
	reads      view.ReadSet
	err        error
}

// newCompiled has what is read of an expression without mistakes.
func newCompiled[T any](of T, expression *device.Expression, key expressionKey, mistake error) compiled[T] {
	c := compiled[T]{of: of, expression: expression, key: key, err: mistake}
	if mistake == nil {
		c.reads = view.NewReadSet(expression.ReadSet())
	}
	return c
}

// meaningOf compiles for the tenant of the context, whose end is the only error. Preferences are left
// out where there are none to be seen.
func meaningOf(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter, preferences bool) (*meaning, error) {
	m := &meaning{}
	var constraints []v1alpha1.Constraint
	constraints, m.constraintsErr = v1alpha1.Resolve(claim, classes)
	for _, c := range constraints {
		expression, err := environment.Compile(ctx, c.Expression, c.Variables...)
		mistake, err := about(err, claim, "constraint", c.Name, c.Source)
		if err != nil {
			return nil, err
		}
		key := newExpressionKey(environment, c.Expression, c.Variables, false)
		m.constraints = append(m.constraints, newCompiled(c, expression, key, mistake))
	}
	if !preferences {
		return m, nil
	}
	var resolved []v1alpha1.Preference
	resolved, m.preferencesErr = v1alpha1.ResolvePreferences(claim, classes)
	for _, p := range resolved {
		if p.Policy != "" {
			m.preferences = append(m.preferences, compiled[v1alpha1.Preference]{of: p})
			continue
		}
		expression, err := environment.CompileInt(ctx, p.Expression, p.Variables...)
		mistake, err := about(err, claim, "preference", p.Name, p.Source)
		if err != nil {
			return nil, err
		}
		key := newExpressionKey(environment, p.Expression, p.Variables, true)
		m.preferences = append(m.preferences, newCompiled(p, expression, key, mistake))
	}
	return m, nil
}

// about says whose mistake it is. err is not about an expression.
func about(failure error, claim *resourceapi.ResourceClaim, kind, name string, source v1alpha1.Source) (mistake, err error) {
	if failure == nil {
		return nil, nil
	}
	if _, ok := errors.AsType[*cel.Error](failure); !ok {
		return nil, failure
	}
	return fmt.Errorf("claim %s, %s %s (%s): %w", klog.KObj(claim), kind, name, source, failure), nil
}
