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

// TestCases checks the invariants of the corpus.
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

// TestCasesFit checks that cases fit into the places where they can be written. A longer expression would be refused for its
// length and attack nothing.
func TestCasesFit(t *testing.T) {
	for _, c := range slices.Concat(Cases(), AsPreferences()) {
		if c.Is(Device | Selector | Search | Preference) {
			// In the JSON parameters of a configuration, with a kind and a name.
			text, err := json.Marshal(c.Text)
			require.NoError(t, err)
			assert.LessOrEqual(t, len(text), 10*1024-128, c.Name)
		}
		if c.Is(Cluster) && c.Name != "too-long" {
			assert.LessOrEqual(t, len([]rune(c.Text)), 100_000, c.Name)
		}
	}
}
