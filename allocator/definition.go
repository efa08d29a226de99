// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// definition is a CEL constraint of a claim, found and compiled.
type definition struct {
	name       string
	expression *device.Expression
	key        expressionKey
}

// definitions remembers the definitions of the claims seen, by pointer: the
// claims of a pod are the same objects for every node, and decoding and
// resolving them costs more than many a search.
type definitions struct {
	byClaim sync.Map // *resourceapi.ResourceClaim -> *resolvedClaim
}

// resolvedClaim is what is remembered of a claim.
type resolvedClaim struct {
	// constraints are its CEL constraints by their index in the claim's constraints.
	constraints func() (map[int]*definition, error)
	// content is the fingerprint of all that an answer depends on.
	content func() (fingerprint.Sum, bool)
}

// resolved is nil for a claim without CEL constraints: those made for one node would
// pile up.
func (d *definitions) resolved(a *Allocator, claim *resourceapi.ResourceClaim) *resolvedClaim {
	if !a.celConstraints || !v1alpha1.HasReference(claim) {
		return nil
	}
	if known, ok := d.byClaim.Load(claim); ok {
		return known.(*resolvedClaim)
	}
	resolved, _ := d.byClaim.LoadOrStore(claim, &resolvedClaim{
		constraints: sync.OnceValues(func() (map[int]*definition, error) { return resolveDefinitions(a, claim) }),
		content:     sync.OnceValues(func() (fingerprint.Sum, bool) { return claimContent(a.classes, claim) }),
	})
	return resolved.(*resolvedClaim)
}

// of returns the CEL constraints of a claim by their index in the claim's
// constraints.
func (d *definitions) of(a *Allocator, claim *resourceapi.ResourceClaim) (map[int]*definition, error) {
	if resolved := d.resolved(a, claim); resolved != nil {
		return resolved.constraints()
	}
	return nil, nil
}

// fingerprint of a claim with CEL constraints, false for others.
func (d *definitions) fingerprint(a *Allocator, claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	if resolved := d.resolved(a, claim); resolved != nil {
		return resolved.content()
	}
	return fingerprint.Sum{}, false
}

func resolveDefinitions(a *Allocator, claim *resourceapi.ResourceClaim) (map[int]*definition, error) {
	resolved, err := v1alpha1.Resolve(claim, a.classes)
	if err != nil {
		return nil, err
	}
	result := make(map[int]*definition, len(resolved))
	for _, constraint := range resolved {
		expression, err := a.environment.Compile(constraint.Expression)
		if err != nil {
			return nil, fmt.Errorf("claim %s, constraint %s (%s): %w", klog.KObj(claim), constraint.Name, constraint.Source, err)
		}
		result[constraint.Index] = &definition{
			name:       constraint.Name,
			expression: expression,
			key:        newExpressionKey(a.environment, constraint.Expression),
		}
	}
	return result, nil
}

// CheckConstraints finds out, without looking at any device, whether the CEL
// constraints of the claims are defined and compile.
func (a *Allocator) CheckConstraints(claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		if _, err := a.definitions.of(a, claim); err != nil {
			return err
		}
	}
	return nil
}
