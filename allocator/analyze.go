// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/cel"
)

// analyze reads what constraints and preferences say of sets as the claim asks for, for the tenant of the context,
// whose end is the only error. What is left out is read when a search needs it.
func (m *meaning) analyze(ctx context.Context, claim *resourceapi.ResourceClaim) error {
	read := func(d definition, names []string) error {
		for _, shape := range setShapes(claim, names) {
			end, err := cel.TakeTurn(ctx)
			if err != nil {
				return err
			}
			analysisOf(&d, shape)
			end()
		}
		return nil
	}
	for i := range m.constraints {
		if c := &m.constraints[i]; c.err == nil {
			if err := read(definition{expression: c.expression, key: c.key}, c.of.Requests); err != nil {
				return err
			}
		}
	}
	for i := range m.preferences {
		if p := &m.preferences[i]; p.err == nil && p.expression != nil {
			if err := read(definition{expression: p.expression, key: p.key}, p.of.Requests); err != nil {
				return err
			}
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
					s.devices, s.covered = s.devices+int(min(r.Spec.Count, resourceapi.AllocationResultsMaxSize+1)), min(2, s.covered+1)
				}
				if s.devices <= resourceapi.AllocationResultsMaxSize && len(next) < maxShapes {
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
