// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// wherever are Placements for which it matters where clusters are.
var wherever = []string{
	spreadOver("numberOfClusters: %d\n"+policy("Exact", "Steady 1")+addOn("r", "s", 1), `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`),
	spreadOver("numberOfClusters: %d\n"+policy("Exact", "ResourceAllocatableCPU 1"),
		`{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: ScheduleAnyway}`, `{topologyKey: "n", topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}`),
	spreadOver("numberOfClusters: %d\n"+policy("Exact", "Steady 2"), `{topologyKey: "n", topologyKeyType: Claim, whenUnsatisfiable: ScheduleAnyway}`),
	spreadOver(exactly(), `{topologyKey: "n", topologyKeyType: Label, maxSkew: %d, whenUnsatisfiable: DoNotSchedule}`),
	spreadOver("numberOfClusters: %d\n", `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`) + grouped(`clustersPerDecisionGroup: 2, decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`),
	"numberOfClusters: %d\n" + exactly() + grouped(`decisionGroups: [{groupName: one, groupClusterSelector: {claimSelector: {matchExpressions: [{key: "n", operator: In, values: ["1", "2"]}]}}}]`),
}

// relocate has one cluster, or two, in another topology.
func (h *history) relocate() {
	for range rapid.IntRange(1, 2).Draw(h.T, "how many move") {
		i := rapid.IntRange(0, len(h.hub.clusters)-1).Draw(h.T, "moves")
		c := h.hub.clusters[i].DeepCopy()
		c.ResourceVersion = h.version()
		where := fmt.Sprint(rapid.IntRange(1, 3).Draw(h.T, "where"))
		switch rapid.IntRange(0, 3).Draw(h.T, "by") {
		case 0:
			delete(c.Labels, "n")
		case 1:
			c.Labels["n"] = where
		case 2:
			c.Status.ClusterClaims = nil
		case 3:
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "n", Value: where}}
		}
		h.hub.clusters = slices.Clone(h.hub.clusters)
		h.hub.clusters[i] = c
	}
}

// A Placement stands while clusters move between topologies and decision groups only if it would be decided as it is.
func TestPlacementsStandWhereverClustersAre(t *testing.T) {
	seen := map[string]int{}
	kinds := []string{"decided", "unmoved with another object", "unmoved with prioritizers"}
	cases.Until(t, cases.Of(50, 1000), func() bool { return !slices.ContainsFunc(kinds, func(kind string) bool { return seen[kind] == 0 }) }, func(rt *rapid.T) {
		s := &stays{history: newHistory(t, rt), scheduler: newScheduler(t), seen: seen}
		for i := range s.objects {
			spec := rapid.SampledFrom(wherever).Draw(rt, "spec")
			object := placed(t, strings.ReplaceAll(spec, "%d", fmt.Sprint(rapid.IntRange(1, 4).Draw(rt, "number"))))
			object.Name, object.UID, object.ResourceVersion = s.objects[i].Name, s.objects[i].UID, s.version()
			s.objects[i] = object
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			if rapid.IntRange(0, 4).Draw(rt, "with "+name) > 0 {
				s.removeCluster(name)
				s.hub.clusters = append(s.hub.clusters, sized(managed(name), "cpu", "1"))
				s.hub.clusters[len(s.hub.clusters)-1].ResourceVersion = s.version()
			}
		}
		for range rapid.IntRange(5, 40).Draw(rt, "changes") {
			moves := false
			switch kind := rapid.IntRange(0, 19).Draw(rt, "kind"); {
			case kind == 0:
				s.replaceScore()
			case kind == 1:
				s.replaceCluster()
			case kind == 2:
				s.heartbeat()
			case len(s.hub.clusters) > 0:
				s.relocate()
				moves = true
			}
			for i, object := range s.objects {
				if rapid.IntRange(0, 3).Draw(rt, fmt.Sprint("look at ", i)) > 0 {
					s.look(object, moves)
				}
			}
		}
	})
	t.Log(seen)
}

// That a cluster which is not selected moves, or one that stays selected, is found out without a decision.
func TestWhatAClusterThatMovesMoves(t *testing.T) {
	hard := `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`
	// By score a, b, c, d; a and c are selected.
	ranked := "numberOfClusters: 2\n" + exactly() + addOn("r", "s", 1)
	for name, test := range map[string]struct {
		spec    string
		move    int
		to      string
		unmoved bool
	}{
		"none that is selected":              {spreadOver(ranked, hard), 3, "1", true},
		"the worst to a new topology":        {spreadOver(ranked, hard), 3, "3", true},
		"one that had to give way":           {spreadOver(ranked, hard), 1, "2", false},
		"a selected one, which stays":        {spreadOver(ranked, hard), 2, "3", true},
		"a selected one, which has to go":    {spreadOver(ranked, hard), 2, "1", false},
		"one of a group, not selected":       {"numberOfClusters: 2\n" + exactly() + addOn("r", "s", 1) + grouped(`decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`), 3, "1", true},
		"one of a group":                     {"numberOfClusters: 2\n" + exactly() + addOn("r", "s", 1) + grouped(`decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`), 0, "2", false},
		"of fewer than there are to be":      {spreadOver("numberOfClusters: 4\n"+exactly()+addOn("r", "s", 1), hard), 3, "1", false},
		"any, where nothing has to be given": {spreadOver("numberOfClusters: 9\n"+exactly(), `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: ScheduleAnyway}`), 0, "3", true},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, object := newHub(managed("a", "n=1"), managed("b", "n=1"), managed("c", "n=2"), managed("d", "n=2")), newScheduler(t), placed(t, test.spec)
			object.ResourceVersion = "1"
			for i, c := range h.clusters {
				h.score(c.Name, "r", map[string]int32{"s": int32(40 - 10*i)})
			}
			standing(t, s, h, object)
			h.update(test.move, func(c *clusterv1.ManagedCluster) { c.Labels["n"] = test.to })
			require.Equal(t, test.unmoved, isUnmoved(s.Unmoved(t.Context(), object, h.snapshot(), now)))
			standing(t, s, h, object)
			require.True(t, isUnmoved(s.Unmoved(t.Context(), object, h.snapshot(), now)))
		})
	}
}
