// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package incremental_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/incremental"
	"github.com/celset/celset/cel"
)

// TestExclusiveBesideShared checks that an exclusive device is added once, even if other devices are shared.
func TestExclusiveBesideShared(t *testing.T) {
	c, err := constraintOf(t, "devices.size() == 2", "a", "b")
	require.NoError(t, err)
	devices := []incremental.Device{
		{Driver: "d", Device: &resourceapi.Device{Name: "exclusive"}},
		{Driver: "d", Device: &resourceapi.Device{Name: "shared", AllowMultipleAllocations: ptr.To(true)}},
	}
	s := c.Over(t.Context(), devices, []incremental.Request{{Name: "a", Count: 1}, {Name: "b", Count: 1}}, cel.NewBudget(manyUnits))
	require.True(t, s.Add("a", 0))
	require.False(t, s.Add("b", 0), "it is there, and does not allow multiple allocations")
	require.True(t, s.Add("b", 1))
}

// TestTooMany checks requests for more devices than exist, up to the greatest int.
func TestTooMany(t *testing.T) {
	c, err := constraintOf(t, "devices.size() > 1", "a", "b")
	require.NoError(t, err)
	for _, count := range []int{2, 1 << 40, math.MaxInt} {
		s := c.Over(t.Context(), []incremental.Device{{Driver: "d", Device: &resourceapi.Device{}}}, []incremental.Request{{Name: "a", Count: count}, {Name: "b", Count: count}}, cel.NewBudget(manyUnits))
		require.False(t, s.Add("a", 0))
		require.NoError(t, s.Err())
	}
}

// TestMisuse checks that invalid arguments cause an error. Without the error, sets would be too small or never complete, and
// Add would return wrong results.
func TestMisuse(t *testing.T) {
	var five []incremental.Device
	for i := range 5 {
		five = append(five, incremental.Device{Driver: "d", Device: &resourceapi.Device{Name: fmt.Sprint(i)}})
	}
	c, err := constraintOf(t, "devices.size() == 3", "a", "b", "x/small")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		devices  []incremental.Device
		requests []incremental.Request
		want     string
	}{
		"negative":         {five, []incremental.Request{{Name: "a", Count: 4}, {Name: "b", Count: -1}}, "request b: -1 devices"},
		"twice":            {five, []incremental.Request{{Name: "a", Count: 2}, {Name: "a", Count: 1}}, "request a is given twice"},
		"two alternatives": {five, []incremental.Request{{Name: "x/small", Count: 2}, {Name: "x/small", Count: 1}}, "request x is given twice"},
		"unknown":          {five, []incremental.Request{{Name: "x/large", Count: 2}}, "the claim has no request x/large, it has a, b, x/small, others"},
		"missing":          {five, []incremental.Request{{Name: "a", Count: 1}, {Name: "b", Count: 1}}, "request x is missing"},
		"no device":        {append(five[:4:4], incremental.Device{Driver: "d"}), []incremental.Request{{Name: "a", Count: 2}, {Name: "b", Count: 1}}, "device 4 is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotPanics(t, func() {
				s := c.Over(t.Context(), test.devices, test.requests, cel.NewBudget(manyUnits))
				for range 2 {
					for i := range 5 {
						for _, r := range test.requests {
							require.False(t, s.Add(r.Name, i))
						}
					}
					require.ErrorContains(t, s.Err(), test.want)
					s.Reset()
				}
			})
		})
	}
}
