// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// TestRank counts the sets that come before one.
func TestRank(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		free := Set(rapid.Uint16().Draw(t, "free"))
		set := free & Set(rapid.Uint16().Draw(t, "set"))
		before := int64(0)
		combinations(free, set.Len(), 0, func(other Set) Set {
			if other == set {
				return first(1)
			}
			before++
			return 0
		})
		if set == 0 {
			before = 0
		}
		if rank(free, set).Cmp(big.NewInt(before)) != 0 {
			t.Fatalf("%v of %v: %v sets before it, expected %d", set, free, rank(free, set), before)
		}
	})
}

func TestSets(t *testing.T) {
	for name, expected := range map[string][]string{ // empty, unsatisfiable
		"pairs-8-4":    {"1", "5"},
		"ring-12-4":    {"1", "126"},
		"block-8x8-16": {"841350771193", "149608375854525"},
		"couples-8-4":  {"1", "35"},
	} {
		for _, s := range Scenarios() {
			if s.Name != name {
				continue
			}
			require.Equal(t, expected[0], s.Sets(s.All()).String(), name)
			require.Equal(t, expected[1], s.Sets(s.All()&^s.Occupancies[4].InUse).String(), name)
		}
	}
}
