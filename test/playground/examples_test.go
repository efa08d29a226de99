// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples checks that the documentation has examples of each group for the playground.
func TestExamples(t *testing.T) {
	examples, err := examplesOf(t.Context(), "../..")
	require.NoError(t, err)
	groups := map[string]int{}
	for _, one := range examples {
		groups[one.Group]++
		t.Log(one.Group, "|", one.Title, "|", one.Machine, one.Nodes)
	}
	for _, group := range []string{"Claims", "Groups of pods", "Placements", "AWS: p4d, trn1 and trn2"} {
		require.NotZero(t, groups[group], group)
	}
}
