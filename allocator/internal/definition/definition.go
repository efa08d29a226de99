// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

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

// Definition is a decoded and compiled CEL constraint or preference of a claim. It is never modified.
type Definition struct {
	Name string
	// Index is the index of the claim's constraint that refers to the definition. It is [v1alpha1.NoReference] for a default
	// constraint or a preference.
	Index int
	// API is a constraint whose field Requests lists the requests that the definition covers.
	API *resourceapi.DeviceConstraint
	// Expression is nil for a policy, and for an expression that does not compile.
	Expression *device.Expression
	// FailurePolicy is not part of Key. It only affects how a failure is handled, and failures are not cached by Key.
	FailurePolicy v1alpha1.FailurePolicy
	// Policy is the policy of a preference, or nil for an expression.
	Policy *v1alpha1.Policy
	Key    Key
	// Reads holds the attributes that the expression reads.
	Reads view.ReadSet
	// Mistake is the error if the expression does not compile, or nil.
	Mistake error
}

// ClaimDefinitions holds the constraints and preferences in the configuration of a claim and of its classes. It depends only on
// the claim and the classes, and is never modified.
type ClaimDefinitions struct {
	Constraints, Preferences []*Definition
	// Defined holds the preferences before they were compiled.
	Defined []v1alpha1.Preference
	// ConstraintsErr is the error if the constraints could not be read, and PreferencesErr if the preferences could not be read.
	ConstraintsErr, PreferencesErr error
}

// compiler compiles the definitions of a claim on behalf of the tenant in the context.
type compiler struct {
	ctx         context.Context
	environment *device.Environment
	claim       *resourceapi.ResourceClaim
}

// CompileClaim compiles the definitions of a claim on behalf of the tenant in the context. It returns an error only if the
// context ended. If preferences is false, it leaves out preferences.
func CompileClaim(ctx context.Context, environment *device.Environment, claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter, preferences bool) (*ClaimDefinitions, error) {
	m, compile := &ClaimDefinitions{}, compiler{ctx, environment, claim}
	var constraints []v1alpha1.Constraint
	constraints, m.ConstraintsErr = v1alpha1.Resolve(claim, classes)
	for i := range constraints {
		c := &constraints[i]
		d := &Definition{Name: c.Label(), Index: c.Index, API: &resourceapi.DeviceConstraint{Requests: c.Requests}, FailurePolicy: c.FailurePolicy}
		if err := compile.add(d, environment.Compile, "constraint", c.Name, c.Source, c.Expression, c.Variables); err != nil {
			return nil, err
		}
		m.Constraints = append(m.Constraints, d)
	}
	if !preferences {
		return m, nil
	}
	m.Defined, m.PreferencesErr = v1alpha1.ResolvePreferences(claim, classes)
	for i := range m.Defined {
		p := &m.Defined[i]
		d := &Definition{Name: p.Label(), Index: v1alpha1.NoReference, API: &resourceapi.DeviceConstraint{Requests: p.Requests}, Policy: v1alpha1.PolicyNamed(p.Policy), FailurePolicy: v1alpha1.FailurePolicyFail}
		d.Key.IsGoal = true
		if p.Policy == "" {
			if err := compile.add(d, environment.CompileInt, "preference", p.Name, p.Source, p.Expression, p.Variables); err != nil {
				return nil, err
			}
		}
		m.Preferences = append(m.Preferences, d)
	}
	return m, nil
}

// add compiles an expression and stores it, or the compile error as Mistake. It returns an error only if the context ended.
func (c *compiler) add(d *Definition, compile func(context.Context, string, ...v1alpha1.Variable) (*device.Expression, error),
	kind, name string, source v1alpha1.Source, text string, variables []v1alpha1.Variable,
) error {
	expression, err := compile(c.ctx, text, variables...)
	d.Key = newExpressionKey(c.environment, text, variables, d.Key.IsGoal)
	if err == nil {
		d.Expression, d.Reads = expression, view.NewReadSet(expression.ReadSet())
		return nil
	}
	if _, ok := errors.AsType[*cel.Error](err); !ok {
		return err
	}
	d.Mistake = fmt.Errorf("claim %s, %s %s (%s): %w", klog.KObj(c.claim), kind, name, source, err)
	return nil
}

// analyze analyzes the expressions for the shapes of sets that the claim asks for, on behalf of the tenant in the context. It
// returns an error only if the context ended. Other shapes are analyzed when a search needs them.
func (m *ClaimDefinitions) analyze(ctx context.Context, claim *resourceapi.ResourceClaim) error {
	for _, d := range slices.Concat(m.Constraints, m.Preferences) {
		if d.Expression == nil {
			continue
		}
		for _, shape := range setShapes(claim, d.API.Requests) {
			end, err := cel.TakeTurn(ctx)
			if err != nil {
				return err
			}
			AnalysisOf(d, shape)
			end()
		}
	}
	return nil
}

// maxShapes limits the number of set shapes of a claim that are analyzed ahead. Claims with more shapes are rare.
const maxShapes = 8

// setShapes returns the possible shapes of the set of devices for the named requests, or for all requests if names is empty. It
// returns nil if a request has allocationMode All, because this request gets a different number of devices on each node.
func setShapes(claim *resourceapi.ResourceClaim, names []string) []SetShape {
	// covered is the number of requests that contribute devices to the set, counted up to 2.
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
	shapes := map[SetShape]bool{}
	for s := range sums {
		if s.devices > 0 {
			shapes[SetShape{s.devices, s.covered == 1}] = true
		}
	}
	return slices.Collect(maps.Keys(shapes))
}

// MaxSetSize is the maximum size of a set.
const MaxSetSize = 256
