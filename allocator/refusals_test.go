// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A refusal is known if and only if Allocate says no without a search. Nothing is known at first,
// and nothing of claims without CEL constraints.
func TestRefusalsAreThoseThatAreKnown(t *testing.T) {
	f := mixedFleet()
	a := f.allocator(t, 0, WithCache(NewCache()))
	requireKnown := func(forMany bool) (known int) {
		for _, pod := range f.pods {
			refusals := a.RefusalsOf(pod)
			if refusals == nil {
				require.Nil(t, a.resolved(pod[0]))
				continue
			}
			if forMany {
				refusals.ForMany()
			}
			for _, node := range f.nodes {
				isKnown := refusals.Has(node)
				_, stats, err := a.AllocateWithStats(t.Context(), node, pod)
				require.Equal(t, isKnown, err != nil && stats.AnswersKnown == 1 && stats.Steps == 0)
				if isKnown {
					require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
					known++
				}
			}
		}
		return known
	}
	cold := requireKnown(false)
	warm := requireKnown(false)
	require.Greater(t, warm, cold)
	require.Equal(t, warm, requireKnown(true))
}

// To ask changes nothing: there is no entry for what nobody has found out.
func TestRefusalsLeaveNothingBehind(t *testing.T) {
	f := mixedFleet()
	cache := NewCache()
	a := f.allocator(t, 0, WithCache(cache))
	for _, pod := range f.pods {
		if refusals := a.RefusalsOf(pod); refusals != nil {
			for _, node := range f.nodes {
				require.False(t, refusals.Has(node))
			}
		}
	}
	require.Zero(t, cache.answers.Len())
}
