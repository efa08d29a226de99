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
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

// plain is a spec whose decisions say nothing that changes but the clusters.
const plain = "prioritizerPolicy: {mode: Exact}\n"

const (
	canary = plain + `decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: one}}}}]}}`
	groups = plain + `decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 60}}`
)

// numbered returns the clusters with numbers from first to before last.
func numbered(first, last int) []*clusterv1.ManagedCluster {
	var result []*clusterv1.ManagedCluster
	for i := first; i < last; i++ {
		result = append(result, managed(fmt.Sprintf("c%04d", i)))
	}
	return result
}

// without removes the clusters with numbers from first to before last.
func (h *hub) without(first, last int) {
	h.clusters = slices.DeleteFunc(h.clusters, func(c *clusterv1.ManagedCluster) bool {
		var n int
		_, err := fmt.Sscanf(c.Name, "c%d", &n)
		return err == nil && n >= first && n < last
	})
}

// label gives a cluster the label "ring", or takes it away.
func (h *hub) label(i int, ring string) {
	for n, c := range h.clusters {
		if c.Name == fmt.Sprintf("c%04d", i) {
			h.clusters[n] = managed(c.Name, "ring="+ring)
		}
	}
}

// stepsOf are the steps as text.
func stepsOf(steps []placement.Step) []string {
	result := []string{}
	for _, step := range steps {
		verb := "write "
		if step.Delete {
			verb = "delete "
		}
		result = append(result, verb+strings.TrimPrefix(step.Object.Name, "p-decision-"))
	}
	return result
}

// lengths draws a decision: "group: slice*clusters slice*clusters ...".
func lengths(result *placement.Result) []string {
	var all []string
	for _, group := range result.Decision.Groups {
		text := group.Name + ":"
		for _, slice := range group.Slices {
			text += fmt.Sprintf(" %s*%d", strings.TrimPrefix(slice.Name, "p-decision-"), len(slice.Decisions))
		}
		all = append(all, text)
	}
	return all
}

func TestClustersStayInTheirSlices(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		// there are c0000 and so on.
		there int
		// changes are made one after the other; of the last one steps and lengths are wanted.
		changes []func(*hub)
		steps   []string
		lengths []string
	}{
		"nothing changes": {plain, 250, []func(*hub){func(*hub) {}}, []string{}, []string{": 1*100 2*100 3*50"}},
		"one goes": {
			plain, 250, []func(*hub){func(h *hub) { h.without(3, 4) }},
			[]string{"write 1"}, []string{": 1*99 2*100 3*50"},
		},
		"one comes, and fills the gap": {
			plain, 250, []func(*hub){func(h *hub) { h.without(103, 104) }, func(h *hub) { h.clusters = append(h.clusters, managed("a")) }},
			[]string{"write 3"}, []string{": 1*100 2*99 3*51"},
		},
		"one goes and one comes": {
			plain, 250, []func(*hub){func(h *hub) {
				h.without(103, 104)
				h.clusters = append(h.clusters, managed("a"))
			}},
			[]string{"write 2"}, []string{": 1*100 2*100 3*50"},
		},
		"more come than there is room for": {
			plain, 250, []func(*hub){func(h *hub) { h.clusters = append(h.clusters, numbered(500, 660)...) }},
			[]string{"write 3", "write 4", "write 5"}, []string{": 1*100 2*100 3*100 4*100 5*10"},
		},
		"up to five slices are as few as possible": {
			plain, 401, []func(*hub){func(h *hub) { h.without(99, 101) }},
			[]string{"write 1", "write 2", "delete 5"}, []string{": 1*100 2*99 3*100 4*100"},
		},
		"of many only the emptiest are put together": {
			plain, 700, []func(*hub){
				func(h *hub) { h.without(0, 40) }, func(h *hub) { h.without(100, 130) }, func(h *hub) { h.without(200, 229) }, func(h *hub) { h.without(300, 301) },
			},
			[]string{"write 1", "write 2", "write 3", "delete 4"}, []string{": 1*100 2*100 3*100 5*100 6*100 7*100"},
		},
		"the first slice stays the first": {
			plain, 150, []func(*hub){func(h *hub) { h.without(0, 100) }},
			[]string{"write 1", "delete 2"}, []string{": 1*50"},
		},
		"the first slice stays the first, though another is full": {
			plain, 200, []func(*hub){func(h *hub) { h.without(0, 100) }},
			[]string{"write 1", "delete 2"}, []string{": 1*100"},
		},
		"all go": {
			plain, 250, []func(*hub){func(h *hub) { h.clusters = nil }},
			[]string{"write 1", "delete 2", "delete 3"}, []string{": 1*0"},
		},
		"the number of one that is gone is used again": {
			plain, 700, []func(*hub){func(h *hub) { h.without(300, 400) }, func(h *hub) { h.clusters = append(h.clusters, numbered(900, 1050)...) }},
			[]string{"write 4", "write 8"}, []string{": 1*100 2*100 3*100 4*100 5*100 6*100 7*100 8*50"},
		},
		"a cluster changes its group": {
			canary, 250, []func(*hub){func(h *hub) { h.label(7, "one") }, func(h *hub) { h.label(8, "one") }},
			[]string{"write 4", "write 1"}, []string{"canary: 4*2", ": 1*98 2*100 3*50"},
		},
		"a group goes": {
			canary, 120, []func(*hub){func(h *hub) { h.label(7, "one") }, func(h *hub) { h.label(7, "two") }},
			[]string{"write 1", "write 2", "delete 3"}, []string{": 1*99 2*21"},
		},
		"each group takes one from the next": {
			groups, 150, []func(*hub){func(h *hub) { h.without(0, 1) }},
			[]string{"write 1", "write 2", "write 3"}, []string{": 1*60", ": 2*60", ": 3*29"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, object := newHub(numbered(0, test.there)...), placed(t, test.spec)
			h.apply(object, schedule(t, object, h))
			var steps []placement.Step
			var result *placement.Result
			for _, change := range test.changes {
				change(h)
				result = schedule(t, object, h)
				steps = h.apply(object, result)
			}
			require.ElementsMatch(t, test.steps, stepsOf(steps), lengths(result))
			if test.lengths != nil {
				require.Equal(t, test.lengths, lengths(result))
			}
		})
	}
}

// Whoever asks for the order of scores has it over the slices of a group.
func TestSlicesInOrderOfScores(t *testing.T) {
	h, object := newHub(numbered(0, 250)...), placed(t, "sortBy: Score\nscoreRateLimit: 0s\n"+exactly()+addOn("r", "s", 1))
	for i, c := range h.clusters {
		h.score(c.Name, "r", map[string]int32{"s": int32(i%7 - 3)})
	}
	for _, change := range []func(){func() {}, func() { h.without(0, 9) }, func() { h.score("c0100", "r", map[string]int32{"s": 90}) }} {
		change()
		result := schedule(t, object, h)
		h.apply(object, result)
		var scores []int64
		for _, slice := range result.Decision.Groups[0].Slices {
			for i, d := range slice.Decisions {
				scores = append(scores, -d.Score)
				if i > 0 && d.Score == slice.Decisions[i-1].Score {
					require.Less(t, slice.Decisions[i-1].ClusterName, d.ClusterName)
				}
			}
		}
		require.True(t, slices.IsSorted(scores))
		require.Len(t, result.Decision.Groups[0].Slices, 3)
	}
}

// Whatever the PlacementDecisions say, the result is sound.
func TestSlicesOfStrangeDecisions(t *testing.T) {
	many := make([]string, 150)
	for i := range many {
		many[i] = fmt.Sprintf("c%04d", i)
	}
	for name, test := range map[string]struct {
		former []*clusterv1beta1.PlacementDecision
		want   string
	}{
		"too long":              {objects{decision("ns", "p", "p-decision-3", many...)}, ": 1*50 3*100"},
		"a cluster in two":      {objects{decision("ns", "p", "p-decision-1", many[:90]...), decision("ns", "p", "p-decision-2", many[80:]...)}, ": 1*90 2*60"},
		"a cluster twice":       {objects{decision("ns", "p", "p-decision-2", append(many[:99:99], many[:10]...)...)}, ": 1*50 2*100"},
		"names without meaning": {objects{decision("ns", "p", "p-decision-01", many[:50]...), decision("ns", "p", "p-decision-0", many[50:]...), decision("ns", "p", "p-decision--1"), decision("ns", "p", "other-decision-2")}, ": 1*100 2*50"},
		"a name too long":       {objects{decision("ns", "p", "p-decision-99999999999999999999", many[:50]...)}, ": 1*100 2*50"},
		"only strangers":        {objects{decision("ns", "p", "p-decision-2", "x", "", "y")}, ": 1*100 2*50"},
		"an index too high":     {objects{labelled(decision("ns", "p", "p-decision-2", "x"), "9223372036854775807")}, ": 1*100 2*50"},
		"an index too low":      {objects{labelled(decision("ns", "p", "p-decision-2", "x"), "-2")}, ": 1*100 2*50"},
		"an empty one":          {objects{labelled(decision("ns", "p", "p-decision-2"), "0")}, ": 1*50 2*100"},
		"of another Placement":  {objects{decision("ns", "q", "p-decision-2", many...), decision("else", "p", "p-decision-3", many...)}, ": 1*100 2*50"},
	} {
		t.Run(name, func(t *testing.T) {
			h, object := newHub(numbered(0, 150)...), placed(t, plain)
			for _, o := range test.former {
				h.decisions.Set(o)
			}
			result := schedule(t, object, h)
			require.Equal(t, []string{test.want}, lengths(result))
			got := selected(t, result)
			slices.Sort(got)
			require.Equal(t, many, got)
		})
	}
}

func labelled(object *clusterv1beta1.PlacementDecision, index string) *clusterv1beta1.PlacementDecision {
	object.Labels[clusterv1beta1.DecisionGroupIndexLabel] = index
	return object
}
