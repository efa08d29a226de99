// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// nested is true for all sets, and costs about the number of devices to the given power.
func nested(loops int, text string) string {
	for i := range loops {
		text = fmt.Sprintf("devices.all(d%d, %s)", i, text)
	}
	return text
}

// An evaluation that crosses the limit of its cost fails, although the bounds know what the
// result would be. Where that can't be excluded they are not asked.
func TestPruningKnowsTheCostLimit(t *testing.T) {
	const small, none = indices + ".min() > 0", indices + ".sum() < 0"
	const contains = "d0.attributes['mla.example.com'].text.contains(d1.attributes['mla.example.com'].text)"
	every := nested(2, strings.Repeat(contains+" && ", 100)+"true")
	short, long := "x", strings.Repeat("x", 64)
	for name, test := range map[string]struct {
		text       string
		devices    int
		expression string
		fails      bool
		tables     bool
	}{
		"cut":             {long, 14, every + " && " + none, true, false},
		"cut, but cheap":  {short, 14, every + " && " + none, false, true},
		"cut before":      {long, 14, none + " && " + every, false, true},
		"one cut":         {long, 15, every + " && " + small, true, false},
		"one proven":      {short, 15, every + " && " + small, false, true},
		"proven":          {long, 14, every, true, false},
		"proven on fewer": {long, 6, every, false, true},
		"loops":           {short, 14, nested(5, "d0.attributes['mla.example.com'].index >= 0"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			devices := ring(test.devices + 1)
			for i := range devices {
				devices[i].Attributes["text"] = resourceapi.DeviceAttribute{StringValue: &test.text}
			}
			s := scenario{
				slices: []*sliceBuilder{slice("1", devices...)}, inUse: []string{fmt.Sprintf("mla-%d", test.devices)},
				claims: []*claimBuilder{claim("c").want("x", int64(min(test.devices, 14))).cel("x").define("x", test.expression)},
			}
			want, _ := s.answer(t, WithExhaustiveSearch(), WithCostBudget(math.MaxUint64), WithStepBudget(math.MaxInt64))
			got, stats := s.answer(t, WithCostBudget(math.MaxUint64), WithStepBudget(math.MaxInt64))
			require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
			require.Equal(t, test.fails, !got.onNode && got.Results == nil)
			if test.fails {
				require.Contains(t, got.Err, "one evaluation exceeds the cost limit of 1000000")
			}
			require.Equal(t, test.tables, stats.TableBuilds > 0, "%+v", stats)
		})
	}
}

// Of a prioritized list each alternative is searched like a request of its own.
func TestAlternativesArePruned(t *testing.T) {
	free := slices.DeleteFunc(ring(32), func(d resourceapi.Device) bool { return *d.Attributes["index"].IntValue%8 == 0 })
	s := scenario{
		slices: []*sliceBuilder{slice("1", free...)},
		claims: []*claimBuilder{claim("c").firstAvailable("x", sub("eight", 8), sub("four", 4)).cel("row").
			define("row", indices+".max() - "+indices+".min() == size(devices) - 1")},
	}
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	require.Equal(t, []string{"x/four=mla-1", "x/four=mla-2", "x/four=mla-3", "x/four=mla-4"}, devicesOf(results))
	require.LessOrEqual(t, a.Stats().Steps, int64(10))
	require.Zero(t, a.Stats().Evaluations)
}
