// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/fixture"
)

// inRacks returns the free devices of racks with 18 devices each. free returns the number of free devices in a rack.
func inRacks(racks int, free func(rack int) int) (all []resourceapi.Device) {
	for rack := range racks {
		for i := range free(rack) {
			all = append(all, newDevice(fmt.Sprintf("mla-%03d-%02d", rack, i), attrs{"rack": rack}))
		}
	}
	return all
}

// torus returns the free devices of a torus, sorted by their coordinates.
func torus(width int, free func(x, y int) bool) (all []resourceapi.Device) {
	for x := range width {
		for y := range width {
			if free(x, y) {
				all = append(all, newDevice(fmt.Sprintf("mla-%02d-%02d", x, y), attrs{"x": x, "y": y}))
			}
		}
	}
	return all
}

// A set may have thousands of candidates, and may be larger than a claim allows. The numbers of evaluations and branches grow
// with the size of the set, not with the number of candidates.
func TestLargeSets(t *testing.T) {
	mla := func(of, id string) string { return of + ".attributes['" + driver + "']." + id }
	fewer := func(rack int) int { return (rack * 7) % 18 }
	oneRack := "devices.all(d, " + mla("d", "rack") + " == " + mla("devices[0]", "rack") + ")"
	twoRacks := "devices.map(d, " + mla("d", "rack") + ").distinct().size() == 2 && " +
		"devices.all(d, devices.filter(o, " + mla("o", "rack") + " == " + mla("d", "rack") + ").size() == 16)"
	block := "devices.box(d, [" + mla("d", "x") + ", " + mla("d", "y") + "], [4, 4], [32, 32])"
	for name, test := range map[string]struct {
		expression string
		size       int
		devices    []resourceapi.Device
		// want is the first device of the set, or "" if no set exists.
		want string
	}{
		"one rack": {oneRack, 18, inRacks(278, func(rack int) int {
			if rack == 250 {
				return 18
			}
			return fewer(rack)
		}), "mla-250-00"},
		"no rack": {oneRack, 18, inRacks(278, fewer), ""},
		"two racks": {twoRacks, 32, inRacks(278, func(rack int) int {
			if rack == 110 || rack == 217 {
				return 16
			}
			return min(15, fewer(rack))
		}), "mla-110-00"},
		"a block around the edge": {block, 16, torus(32, func(x, y int) bool {
			return (x+y)%4 != 0 || (x >= 30 || x < 2) && 5 <= y && y < 9
		}), "mla-00-05"},
		"no block":                {block, 16, torus(32, func(x, y int) bool { return (x+y)%4 != 0 }), ""},
		"as many as there may be": {"true", MaxSetSize, inRacks(278, func(int) int { return 18 }), "mla-000-00"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{fixture.Scenario{
				Claims: []*claimBuilder{claim("c").Want("r", int64(test.size)).Cel("set").Define("set", test.expression)},
				Slices: []*sliceBuilder{slice("s", test.devices...)}, Options: []option{WithMaxResults(MaxSetSize)},
			}}
			results, stats, err := s.allocator(t).AllocateWithStats(t.Context(), s.OnNode(), s.APIClaims())
			require.NoError(t, err)
			require.LessOrEqual(t, stats.Steps, int64(test.size+2))
			require.LessOrEqual(t, stats.Evaluations, int64(1))
			if test.want == "" {
				require.Empty(t, results)
				return
			}
			require.Len(t, results[0].Devices.Results, test.size)
			require.Equal(t, test.want, results[0].Devices.Results[0].Device)
		})
	}
	_, err := scenario{fixture.Scenario{
		Claims: []*claimBuilder{claim("c").Want("r", MaxSetSize+1)}, Slices: []*sliceBuilder{slice("s")}, Options: []option{WithMaxResults(1000)},
	}}.allocate(t)
	require.ErrorContains(t, err, "adding 257 devices exceeds the claim limit of 256")
}
