// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// hubOfRegions has clusters a0, a1 ... in the region a, and so on.
func hubOfRegions(regions ...string) *hub {
	h := newHub()
	for i, region := range regions {
		name := fmt.Sprintf("%s%d", region, i)
		h.clusters = append(h.clusters, claiming(managed(name, "region="+region), "region="+region))
	}
	return h
}

func spreadOver(more string, constraints ...string) string {
	return "spreadPolicy: {spreadConstraints: [" + strings.Join(constraints, ", ") + "]}\n" + more
}

const (
	hard  = `{topologyKey: region, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}`
	soft  = `{topologyKey: region, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}`
	hard2 = `{topologyKey: region, topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}`
	zones = `{topologyKey: zone, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}`
)

func TestSpread(t *testing.T) {
	regions := hubOfRegions("a", "a", "a", "a", "b", "c")
	for name, test := range map[string]struct {
		hub  *hub
		spec string
		want []string
	}{
		"not at all":                        {regions, `numberOfClusters: 3`, []string{"a0", "a1", "a2"}},
		"one of each":                       {regions, spreadOver(`numberOfClusters: 3`, hard), []string{"a0", "b4", "c5"}},
		"then the next of each":             {regions, spreadOver(`numberOfClusters: 4`, hard), []string{"a0", "a1", "b4", "c5"}},
		"DoNotSchedule stops":               {regions, spreadOver(`numberOfClusters: 5`, hard), []string{"a0", "a1", "b4", "c5"}},
		"DoNotSchedule stops without limit": {regions, spreadOver(``, hard), []string{"a0", "a1", "b4", "c5"}},
		"ScheduleAnyway goes on":            {regions, spreadOver(`numberOfClusters: 5`, soft), []string{"a0", "a1", "a2", "b4", "c5"}},
		"ScheduleAnyway prefers":            {regions, spreadOver(`numberOfClusters: 3`, soft), []string{"a0", "b4", "c5"}},
		"ScheduleAnyway without limit":      {regions, spreadOver(``, soft), []string{"a0", "a1", "a2", "a3", "b4", "c5"}},
		"maxSkew 2, by claims":              {regions, spreadOver(`numberOfClusters: 3`, hard2), []string{"a0", "a1", "b4"}},
		"defaults are maxSkew 1 and ScheduleAnyway": {
			regions, spreadOver(`numberOfClusters: 3`, `{topologyKey: region, topologyKeyType: Label}`), []string{"a0", "b4", "c5"},
		},
		"the score decides within a topology": {
			func() *hub {
				h := hubOfRegions("a", "a", "b")
				h.decided("ns", "p", "a1")
				return h
			}(), spreadOver(`numberOfClusters: 2`, hard), []string{"a1", "b2"},
		},
		"no topology is never selected with DoNotSchedule": {
			newHub(managed("x"), managed("y", "region=a")), spreadOver(``, hard), []string{"y"},
		},
		"no topology comes last with ScheduleAnyway": {
			newHub(managed("x"), managed("y", "region=a"), managed("z", "region=a")), spreadOver(`numberOfClusters: 2`, soft), []string{"y", "z"},
		},
		"no topology may be selected with ScheduleAnyway": {
			newHub(managed("x"), managed("y", "region=a")), spreadOver(`numberOfClusters: 2`, soft), []string{"x", "y"},
		},
		"an empty value is a topology": {
			newHub(managed("x", "region="), managed("y", "region="), managed("z", "region=a")), spreadOver(`numberOfClusters: 2`, hard), []string{"x", "z"},
		},
		"the first constraint counts most": {
			newHub(managed("1", "region=a", "zone=x"), managed("2", "region=a", "zone=y"), managed("3", "region=b", "zone=x")),
			spreadOver(`numberOfClusters: 2`, soft, zones), []string{"1", "3"},
		},
		"also the other way round": {
			newHub(managed("1", "region=a", "zone=x"), managed("2", "region=a", "zone=y"), managed("3", "region=b", "zone=x")),
			spreadOver(`numberOfClusters: 2`, zones, soft), []string{"1", "2"},
		},
		"filtered clusters have no topology": {
			newHub(managed("1", "region=a"), managed("2", "region=a"), tainting(managed("3", "region=b"), "t", "NoSelect")),
			spreadOver(``, hard), []string{"1", "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, selected(t, schedule(t, placed(t, test.spec), test.hub)))
		})
	}
}

func TestSpreadSaysWhy(t *testing.T) {
	h := hubOfRegions("a", "a", "b", "b", "b")
	h.clusters = append(h.clusters, managed("x"))
	result := schedule(t, placed(t, spreadOver(`numberOfClusters: 3`, hard)), h)
	got := map[string]string{}
	for _, c := range result.Candidates {
		if require.Equal(t, c.Selected, c.Reason == nil); !c.Selected {
			got[c.Cluster.Name] = c.Reason.String()
		}
	}
	require.Equal(t, map[string]string{
		"b3": "is not among the first 3",
		"b4": "is not among the first 3",
		"x":  `has no "region", which spec.spreadPolicy.spreadConstraints[0] needs`,
	}, got)

	h = hubOfRegions("a", "a", "b")
	h.clusters = h.clusters[:2]
	h.clusters = append(h.clusters, managed("x", "region=b"))
	result = schedule(t, placed(t, spreadOver(`numberOfClusters: 4`, `{topologyKey: region, topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`, `{topologyKey: none, topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`)), h)
	require.Empty(t, selected(t, result))
	requireSatisfied(t, result, metav1.ConditionFalse, placement.ReasonNoneMatched, "3 clusters available, Predicate removed 0, TaintToleration removed 0, Spread removed 3")

	result = schedule(t, placed(t, spreadOver(``, hard)), hubOfRegions("a", "a", "a", "b"))
	require.Equal(t, "would exceed the maxSkew 1 of spec.spreadPolicy.spreadConstraints[0]: 2 clusters are selected with region=a, and 1 with another", result.Candidates[2].Reason.String())
	requireSatisfied(t, result, metav1.ConditionTrue, placement.ReasonScheduled, "All cluster decisions scheduled")
}

func TestBadSpreadPolicies(t *testing.T) {
	const path = "Spread:spec.spreadPolicy.spreadConstraints"
	for constraint, message := range map[string]string{
		`{topologyKeyType: Label}`:                                         path + `[0].topologyKey: the key is empty; name a label or a claim of clusters`,
		`{topologyKey: a}`:                                                 path + `[0].topologyKeyType: unknown type ""; use Label or Claim`,
		`{topologyKey: a, topologyKeyType: Field}`:                         path + `[0].topologyKeyType: unknown type "Field"; use Label or Claim`,
		`{topologyKey: a, topologyKeyType: Label, maxSkew: -1}`:            path + `[0].maxSkew: the skew -1 must be at least 1`,
		`{topologyKey: a, topologyKeyType: Label, whenUnsatisfiable: Cry}`: path + `[0].whenUnsatisfiable: unknown action "Cry"; use ScheduleAnyway or DoNotSchedule`,
		strings.Repeat(soft+", ", 8) + soft:                                path + `: 9 constraints are too many; use at most 8`,
	} {
		requireMisconfigured(t, schedule(t, placed(t, spreadOver(``, constraint)), newHub(several("a")...)), message)
	}
}

// exhaustively picks by the definition: at each step every candidate is judged.
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
