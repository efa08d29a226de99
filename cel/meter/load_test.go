// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pattern that is too large to be compiled has no limit: what it takes is that much, and not
// something that no comparison finds too large.
func TestPatternsWithoutLimitHaveNone(t *testing.T) {
	for _, function := range []string{"matches", "find", "findAll"} {
		for _, groups := range []float64{0, 1, maxGroups} {
			load := LoadOf(function, Call{Pattern: Pattern{Instructions: noLimit, Groups: groups}})
			require.GreaterOrEqual(t, load.Nanoseconds, float64(noLimit), function)
			require.GreaterOrEqual(t, load.Bytes, float64(noLimit), function)
		}
	}
}

// Loads are numbers, also where nothing is known of the operands.
func TestLoadsAreNumbers(t *testing.T) {
	sizes := []float64{0, 1, math.Inf(1)}
	for function := range loads {
		for _, first := range sizes {
			for _, second := range sizes {
				for _, result := range sizes {
					call := Call{First: Operand{Size: first, Deep: first}, Second: Operand{Size: second, Deep: second}, Result: result, Count: 2}
					load := LoadOf(function, call)
					require.GreaterOrEqual(t, load.Nanoseconds, 0.0, "%s: %+v", function, call)
					require.GreaterOrEqual(t, load.Bytes, 0.0, "%s: %+v", function, call)
				}
			}
		}
	}
}
