// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

const hard = `{topologyKey: region, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}`

// exhaustively picks clusters as the definition of spreading says: at each step it compares all candidates.
func exhaustively(candidates []*clusterv1.ManagedCluster, limit int, hard []bool, keys []string, maxSkew []int) []string {
	picked, counts := []string{}, make([]map[string]int, len(keys))
	for i, key := range keys {
		counts[i] = map[string]int{}
		for _, c := range candidates {
			if value, ok := c.Labels[key]; ok {
				counts[i][value] = 0
			}
		}
	}
	least := func(i int) int { return slices.Min(slices.Collect(maps.Values(counts[i]))) }
	for len(picked) < limit {
		best, bestExcess := -1, []int(nil)
	candidates:
		for at, c := range candidates {
			if slices.Contains(picked, c.Name) {
				continue
			}
			excess := make([]int, len(keys))
			for i, key := range keys {
				value, ok := c.Labels[key]
				excess[i] = 1 << 30
				if ok {
					excess[i] = max(0, counts[i][value]+1-least(i)-maxSkew[i])
				}
				if hard[i] && excess[i] > 0 {
					continue candidates
				}
			}
			if best < 0 || slices.Compare(excess, bestExcess) < 0 {
				best, bestExcess = at, excess
			}
		}
		if best < 0 {
			break
		}
		picked = append(picked, candidates[best].Name)
		for i, key := range keys {
			if value, ok := candidates[best].Labels[key]; ok {
				counts[i][value]++
			}
		}
	}
	slices.Sort(picked)
	return picked
}

func TestSpreadIsThatOfTheDefinition(t *testing.T) {
	s := newScheduler(t)
	cases.Check(t, func(rt *rapid.T) {
		h := newHub()
		for i := range rapid.IntRange(0, 14).Draw(rt, "clusters") {
			c := managed(fmt.Sprintf("c%02d", i))
			for _, key := range []string{"k0", "k1"} {
				if value := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(rt, key); value != "" {
					c.Labels[key] = value
				}
			}
			h.clusters = append(h.clusters, c)
		}
		var isHard []bool
		var keys, constraints []string
		var maxSkew []int
		for i := range rapid.IntRange(1, 2).Draw(rt, "constraints") {
			isHard = append(isHard, rapid.Bool().Draw(rt, "hard"))
			keys = append(keys, fmt.Sprintf("k%d", i))
			maxSkew = append(maxSkew, rapid.IntRange(1, 3).Draw(rt, "maxSkew"))
			constraints = append(constraints, fmt.Sprintf(`{topologyKey: k%d, topologyKeyType: Label, maxSkew: %d, whenUnsatisfiable: %s}`,
				i, maxSkew[i], map[bool]string{true: "DoNotSchedule", false: "ScheduleAnyway"}[isHard[i]]))
		}
		wanted := rapid.IntRange(0, 15).Draw(rt, "wanted")
		object := placed(t, spreadOver(fmt.Sprintf("numberOfClusters: %d", wanted), constraints...))
		object.UID = ""
		result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
		require.NoError(rt, err)
		require.Equal(rt, exhaustively(h.clusters, wanted, isHard, keys, maxSkew), selected(t, result))
	})
}
