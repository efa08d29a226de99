// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math/big"
	"testing"

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
