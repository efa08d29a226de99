// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestCases checks that names are unique and that all fields of the cases are consistent.
func TestCases(t *testing.T) {
	cases := Cases()
	require.Greater(t, len(cases), 250)
	names, attacks, places := map[string]bool{}, map[Attack]int{}, Where(0)
	for _, c := range cases {
		require.False(t, names[c.Name], "%s: there are two", c.Name)
		require.Empty(t, validation.IsDNS1123Label("claim-"+c.Name))
		require.NotEmpty(t, c.Why, c.Name)
		require.NotZero(t, c.Where, c.Name)
		require.True(t, c.Text != "" || c.Where == Report, c.Name)
		names[c.Name] = true
		attacks[c.Attack]++
		places |= c.Where
	}
	for _, a := range []Attack{Time, Memory, Compilation, Panic} {
		require.Greater(t, attacks[a], 30, "%s", a)
	}
	require.Equal(t, "device+selector+cluster+body+report+search+preference", places.String())
}

// TestCasesFit checks that each case is short enough for its places. Otherwise it would be rejected because of its length, and
// would test nothing.
func TestCasesFit(t *testing.T) {
	for _, c := range slices.Concat(Cases(), AsPreferences()) {
		if c.Is(Device | Selector | Search | Preference) {
			// Encode the text as in the JSON parameters of a claim's configuration.
			text, err := json.Marshal(c.Text)
			require.NoError(t, err)
			assert.LessOrEqual(t, len(text), 10*1024-128, c.Name)
		}
		if c.Is(Cluster) && c.Name != "too-long" {
			assert.LessOrEqual(t, len([]rune(c.Text)), 100_000, c.Name)
		}
	}
}
