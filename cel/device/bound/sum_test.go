// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

const sumOfX = "devices.map(d, d.x).sum()"

// Comparisons with every limit that is interesting, over numbers that go to the
// extremes of an int64.
func TestSumsAreSound(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	devices := [][]*device.Device{
		ranked(0, 1, 2, 4, 7),
		ranked(3, 3, 3, 5, -3),
		ranked(-1, -2, -2, 9),
		ranked(least, least+1, -1, 0),
		ranked(most, most-1, 0, 1),
		ranked(least, 0, most, 1),
		ranked(least/4, least/4-1, most/4, 1),
		devicesWith(values{"x": 0}, values{}, values{"x": 1}, values{"x": "text"}, values{"x": 5}),
	}
	soundWithLimits(t, []int64{least, least + 1, least / 2, -4, -1, 0, 1, 3, 6, 11, most / 2, most - 1, most}, devices, sumOfX)
}

// Nothing is removed that is in a set within the limits, and everything that is in none is, where only the sum matters.
func TestSumsRemoveAllTheyCan(t *testing.T) {
	e := environment(t)
	cases.CheckN(t, cases.Of(2000, 10_000), func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Range(-5, 5), 4, 8).Draw(rt, "numbers")
		limit, relation := rapid.Int64Range(-16, 16).Draw(rt, "limit"), rapid.SampledFrom([]string{">", ">=", "<", "<="}).Draw(rt, "relation")
		s := newSound(t, e, fmt.Sprintf("%s %s %d", sumOfX, relation, limit), 3, ranked(numbers...))
		var chosen, possible []int
		for i := range numbers {
			switch rapid.IntRange(0, 5).Draw(rt, "is") {
			case 0:
				if len(chosen) < 3 {
					chosen = append(chosen, i)
				}
			case 1:
			default:
				possible = append(possible, i)
			}
		}
		infeasible, propagated := s.check(t, s.bounds(t), s.partial(chosen, possible), bound.Quick)
		useful := map[int]bool{}
		s.completions(chosen, possible, func(set []int) {
			sum := int64(0)
			for _, i := range set {
				sum += numbers[i]
			}
			if map[string]bool{">": sum > limit, ">=": sum >= limit, "<": sum < limit, "<=": sum <= limit}[relation] {
				useful[-1] = true
				for _, i := range set {
					useful[i] = true
				}
			}
		})
		require.Equal(rt, !useful[-1], infeasible)
		if infeasible || len(chosen) == 3 {
			return
		}
		for _, i := range possible {
			require.Equal(rt, useful[i], propagated.Domain.Has(i), "device %d", i)
		}
	})
}

// completions calls f with each set of three of the chosen devices and possible ones.
func (s *sound) completions(chosen, possible []int, f func(set []int)) {
	if len(chosen) == 3 {
		f(chosen)
		return
	}
	for i, device := range possible {
		s.completions(append(append([]int{}, chosen...), device), possible[i+1:], f)
	}
}
