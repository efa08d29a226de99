// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var results = []Outcome{True, False, Error}

// celAnd is what CEL says of two single results.
func celAnd(a, b Outcome) Outcome {
	switch {
	case a == False || b == False:
		return False
	case a == Error || b == Error:
		return Error
	default:
		return True
	}
}

func celNot(a Outcome) Outcome {
	switch a {
	case True:
		return False
	case False:
		return True
	default:
		return Error
	}
}

// eachPair calls f for all sets of results, and the function on single results
// applied to all of their elements.
func eachPair(f func(a, b Outcome, apply func(func(x, y Outcome) Outcome) Outcome)) {
	for a := True; a <= Open; a++ {
		for b := True; b <= Open; b++ {
			f(a, b, func(single func(x, y Outcome) Outcome) Outcome {
				var all Outcome
				for _, x := range results {
					for _, y := range results {
						if a.may(x) && b.may(y) {
							all |= single(x, y)
						}
					}
				}
				return all
			})
		}
	}
}

func TestLogicIsThatOfAllResults(t *testing.T) {
	eachPair(func(a, b Outcome, apply func(func(x, y Outcome) Outcome) Outcome) {
		require.Equal(t, apply(celAnd), a.and(b), "%s && %s", a, b)
		require.Equal(t, apply(func(x, y Outcome) Outcome { return celNot(celAnd(celNot(x), celNot(y))) }), a.or(b), "%s || %s", a, b)
		require.Equal(t, apply(func(x, _ Outcome) Outcome { return celNot(x) }), a.not(), "!%s", a)
		for c := True; c <= Open; c++ {
			var all Outcome
			for _, when := range results {
				switch {
				case !a.may(when):
				case when == True:
					all |= b
				case when == False:
					all |= c
				default:
					all |= Error
				}
			}
			require.Equal(t, all, a.choose(b, c), "%s ? %s : %s", a, b, c)
		}
	})
}

func TestOutcomeString(t *testing.T) {
	require.Equal(t, "true|false|error", Open.String())
	require.Equal(t, "false", False.String())
	require.Equal(t, "", Outcome(0).String())
}
