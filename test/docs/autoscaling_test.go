// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestUpstreamHasNoDevices is what autoscalers believe: with all devices free,
// Kubernetes' allocator has none for a claim with a constraint, and has some for the same
// claim without. What a class holds them to by default it does not see, and has some.
func TestUpstreamHasNoDevices(t *testing.T) {
	unseen := 0
	for page, examples := range hardwarePages(t) {
		p := readHardwarePage(t, page)
		for _, e := range examples {
			t.Run(e.template, func(t *testing.T) {
				problem := p.problem(t, e, 0)
				a, err := structured.NewAllocator(t.Context(), problem.Features, structured.AllocatedState{},
					problem.Classes, problem.Slices, problem.Selectors)
				require.NoError(t, err)
				results, err := a.Allocate(t.Context(), node, problem.Claims)
				require.NoError(t, err)
				if !v1alpha1.HasReference(problem.Claims[0]) {
					unseen++
					require.Len(t, results, 1)
					return
				}
				require.Empty(t, results)

				plain := problem.Claims[0].DeepCopy()
				plain.Spec.Devices.Constraints = nil
				problem.Claims[0] = plain
				results, err = a.Allocate(t.Context(), node, problem.Claims)
				require.NoError(t, err)
				require.Len(t, results, 1)
			})
		}
	}
	require.Positive(t, unseen, "no claim with a default")
}
