// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/randomexpr"
)

// randomlyConstrained adds random expressions to a random scenario. Its devices have
// the attribute index; color they may lack, or have as a list.
func randomlyConstrained(t *rapid.T) scenario {
	s := randomScenario(t)
	if oneIn(t, 3, "plain") {
		s = plainScenario(t)
	}
	for _, c := range s.claims {
		for _, name := range []string{"first", "second"}[:rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "expressions")] {
			var covered []string
			if oneIn(t, 3, "covers some") {
				covered = []string{randomReference(t, c), randomReference(t, c)}
			}
			c.define(name, randomexpr.Condition(t, randomexpr.Attributes{Domain: driver, Ints: []string{"color", "index"}, String: "color"}))
			c.cel(name, covered...)
		}
	}
	return s
}

// plainScenario has nothing that keeps sets from being completed but an occasional
// selector that fails, so that much is left to the expressions.
func plainScenario(t *rapid.T) scenario {
	n := rapid.IntRange(5, 8).Draw(t, "devices")
	devices := make([]resourceapi.Device, n)
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{
			"index": rapid.IntRange(0, 4).Draw(t, "index"),
			"color": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "color"),
		})
		if oneIn(t, 12, "without color") {
			delete(devices[i].Attributes, "color")
		}
	}
	c := claim("c")
	for i := range rapid.IntRange(1, 2).Draw(t, "requests") {
		var selectors []string
		if oneIn(t, 8, "selector fails") {
			selectors = []string{"1 / (" + index + " - 3) < 2"}
		}
		c.want(fmt.Sprint("c-", i), rapid.Int64Range(1, 4).Draw(t, "count"), selectors...)
	}
	return scenario{slices: []*sliceBuilder{slice("1", devices...)}, claims: []*claimBuilder{c}}
}

// Reading expressions changes nothing but the number of steps and evaluations: not
// the devices, not which error is met, with all its text.
func TestReadingExpressionsChangesNothing(t *testing.T) {
	seen := map[string]int{}
	for range 40 {
		rapid.Check(t, func(rt *rapid.T) {
			s := randomlyConstrained(rt)
			want, all := s.answer(t, WithExhaustiveSearch())
			got, some := s.answer(t)
			require.Empty(rt, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
			require.LessOrEqual(rt, some.Evaluations, all.Evaluations)
			seen["all"]++
			if some.Cuts > 0 {
				seen["cut"]++
			}
			if some.Cuts > 0 && want.Results != nil {
				seen["cut and found"]++
			}
			if some.Cuts > 0 && want.Err != "" {
				seen["cut and failed"]++
			}
		})
	}
	t.Log(seen)
	require.Greater(t, seen["cut"], seen["all"]/20)
	require.Greater(t, seen["cut and found"], seen["all"]/500)
	require.Greater(t, seen["cut and failed"], seen["all"]/1000)
}
