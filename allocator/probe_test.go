// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// withProbesAfter has searches for better sets probe after that many steps.
func withProbesAfter(steps int64) Option {
	return func(o *options) { o.probeAfter = steps }
}

const never = math.MaxInt64 / 2

func indexed(count int) *sliceBuilder {
	devices := make([]resourceapi.Device, count)
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%02d", i), attrs{"index": i})
	}
	return slice("devices", devices...)
}

// Probes find the set that going from each to the next finds.
func TestProbes(t *testing.T) {
	for name, test := range map[string]struct{ constraint, preference, want string }{
		"as good as bounds say": {"true", sum, "14 15 16 17 18 19"},
		"not as good":           {indices + ".all(i, i % 4 != 3) && " + indices + ".sum() % 2 == 1", sum, "09 13 14 16 17 18"},
		"the first of the best": {"true", sum + " / 16", "11 15 16 17 18 19"},
		"a negative value":      {indices + ".all(i, i > 3)", "-" + sum, "04 05 06 07 08 09"},
		"no better one":         {sum + " == 15", sum, "00 01 02 03 04 05"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, number := range strings.Fields(test.want) {
				want = append(want, "r=mla-"+number)
			}
			for _, after := range []int64{1, 20, probeAfter, never} {
				s := scenario{claims: []*claimBuilder{claim("c").want("r", 6).cel("cel").define("cel", test.constraint).prefer("p", test.preference)}, slices: []*sliceBuilder{indexed(20)}}
				got, stats := s.answer(t, withProbesAfter(after), WithPreferenceBudget(DefaultCostBudget, DefaultStepBudget))
				require.Empty(t, got.Err)
				require.Equal(t, want, devicesOf(got.Results), "probes after %d", after)
				require.Equal(t, int64(1), stats.PreferencesBest)
			}
		})
	}
}

// Where sets are a little better than the last many times, probes take fewer steps.
func TestProbesSpareSteps(t *testing.T) {
	steps := func(after int64) int64 {
		s := scenario{claims: []*claimBuilder{claim("c").want("r", 8).prefer("p", sum)}, slices: []*sliceBuilder{indexed(48)}}
		got, stats := s.answer(t, withProbesAfter(after), WithPreferenceBudget(DefaultCostBudget, DefaultStepBudget))
		require.Equal(t, "r=mla-40", devicesOf(got.Results)[0])
		require.Equal(t, int64(1), stats.PreferencesBest)
		return stats.Steps
	}
	const most = probeAfter + 4*8
	require.Less(t, steps(probeAfter), int64(most))
	require.Greater(t, steps(never), int64(5*most))
}

// The value in the middle is above the lower one, and not above the other, however far they are apart.
func TestBetween(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		low := rapid.Int64Max(math.MaxInt64-1).Draw(t, "low")
		high := rapid.Int64Min(low+1).Draw(t, "high")
		middle := between(low, high)
		require.Greater(t, middle, low)
		require.LessOrEqual(t, middle, high)
		below, above := uint64(middle)-uint64(low), uint64(high)-uint64(middle)
		require.LessOrEqual(t, max(below, above)-min(below, above), uint64(1))
	})
}
