// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

const (
	// mostWrites is the maximum number of objects that may be written after one cluster has changed, if there is one group.
	mostWrites = 5
	// universe is the maximum number of clusters.
	universe = 800
)

// change changes one random cluster if one is set, otherwise many clusters.
func (h *hub) change(t *rapid.T, one bool) {
	first := rapid.IntRange(0, universe-1).Draw(t, "first")
	last := first + 1
	if !one {
		last = min(universe, first+rapid.IntRange(1, 400).Draw(t, "how many"))
	}
	stride := rapid.SampledFrom([]int{1, 1, 3, 50}).Draw(t, "stride")
	join := rapid.IntRange(0, 2).Draw(t, "join") == 0
	ring := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "ring")
	at := map[string]int{}
	for i, c := range h.clusters {
		at[c.Name] = i
	}
	gone := sets.New[string]()
	for i := first; i < last; i += stride {
		c := managed(fmt.Sprintf("c%04d", i), "ring="+ring)
		n, has := at[c.Name]
		switch {
		case join && has:
			h.clusters[n] = c
		case join:
			h.clusters = append(h.clusters, c)
		default:
			gone.Insert(c.Name)
		}
	}
	h.clusters = slices.DeleteFunc(h.clusters, func(c *clusterv1.ManagedCluster) bool { return gone.Has(c.Name) })
}

// slicing has the names of the clusters of a decision. For each group, it maps the name of a slice to its clusters.
type slicing []map[string]sets.Set[string]

func slicingOf(decision *placement.Decision) slicing {
	var result slicing
	for _, group := range decision.Groups {
		named := map[string]sets.Set[string]{}
		for _, slice := range group.Slices {
			named[slice.Name] = sets.New[string]()
			for _, d := range slice.Decisions {
				named[slice.Name].Insert(d.ClusterName)
			}
		}
		result = append(result, named)
	}
	return result
}

// unions returns all clusters of each group.
func (s slicing) unions() []sets.Set[string] {
	var result []sets.Set[string]
	for _, group := range s {
		union := sets.New[string]()
		for _, slice := range group {
			union = union.Union(slice)
		}
		result = append(result, union)
	}
	return result
}

// requireSound checks invariants of slices that hold for all former slices.
func requireSound(t *rapid.T, decision *placement.Decision, former bool) {
	named := sets.New[string]()
	for _, group := range decision.Groups {
		clusters, n := sets.New[string](), 0
		for _, slice := range group.Slices {
			require.LessOrEqual(t, len(slice.Decisions), placement.MaxSliceLength)
			require.True(t, slices.IsSortedFunc(slice.Decisions, byName))
			require.False(t, named.Has(slice.Name), "%s is there twice", slice.Name)
			named.Insert(slice.Name)
			n += len(slice.Decisions)
			for _, d := range slice.Decisions {
				clusters.Insert(d.ClusterName)
			}
		}
		require.Len(t, clusters, n, "a cluster is in two slices")
		if needed := max(1, (n+99)/100); !former || len(group.Slices) <= 5 {
			require.Len(t, group.Slices, needed)
		} else {
			require.Less(t, 80*len(group.Slices), n, "%d slices of %d clusters", len(group.Slices), n)
		}
	}
}

func byName(a, b clusterv1beta1.ClusterDecision) int {
	if a.ClusterName < b.ClusterName {
		return -1
	}
	return 1
}

// requireStable requires that a cluster stays in its slice if the slice still belongs to the cluster's group. It checks only
// decisions with a single group.
func requireStable(t *rapid.T, before, after slicing) {
	where := map[string]string{}
	for _, group := range after {
		for slice, clusters := range group {
			for cluster := range clusters {
				where[cluster] = slice
			}
		}
	}
	if len(before) != 1 || len(after) != 1 {
		return
	}
	for slice, clusters := range before[0] {
		if _, remains := after[0][slice]; !remains {
			continue
		}
		for cluster := range clusters {
			if at, selected := where[cluster]; selected {
				require.Equal(t, slice, at, cluster)
			}
		}
	}
}

func TestSlicesAreStable(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		h := newHub()
		object := placed(t, plain)
		var former slicing
		for range rapid.IntRange(1, 15).Draw(rt, "changes") {
			one := former != nil && rapid.Bool().Draw(rt, "one")
			switch {
			case !one && rapid.IntRange(0, 4).Draw(rt, "another spec") == 0:
				object = placed(t, rapid.SampledFrom([]string{plain, canary, groups}).Draw(rt, "spec"))
			default:
				h.change(rt, one)
			}
			result := schedule(t, object, h)
			requireSound(rt, result.Decision, true)
			require.Equal(rt, outcome(result), outcome(schedule(t, object, h)), "it is decided by the input alone")

			after := slicingOf(result.Decision)
			steps := h.apply(object, result)
			requireStable(rt, former, after)
			if one && len(former) == 1 && len(after) == 1 {
				require.LessOrEqual(rt, len(steps), mostWrites, "%s", stepsOf(steps))
			}
			require.Empty(rt, h.apply(object, schedule(t, object, h)), "what is decided stays so")

			// Without the former decision, the groups must have the same clusters.
			oblivious := h.snapshot()
			oblivious.Decisions = nil
			fresh, err := newScheduler(t).Schedule(t.Context(), object, oblivious, now)
			require.NoError(rt, err)
			requireSound(rt, fresh.Decision, false)
			require.Equal(rt, slicingOf(fresh.Decision).unions(), after.unions())
			requireContiguous(rt, fresh.Decision)
			former = after
		}
	})
}

// requireContiguous requires the same slices that Open Cluster Management would write.
func requireContiguous(t *rapid.T, decision *placement.Decision) {
	n := 0
	for _, group := range decision.Groups {
		var names []string
		for i, slice := range group.Slices {
			n++
			require.Equal(t, fmt.Sprintf("p-decision-%d", n), slice.Name)
			if i < len(group.Slices)-1 {
				require.Len(t, slice.Decisions, placement.MaxSliceLength)
			}
			for _, d := range slice.Decisions {
				names = append(names, d.ClusterName)
			}
		}
		require.True(t, slices.IsSorted(names))
	}
}

// TestWritesOfOneClusterThatMoves moves one cluster between two groups. Only objects of these two groups may be written.
func TestWritesOfOneClusterThatMoves(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		h, object := newHub(numbered(0, universe)...), placed(t, canary)
		for i, c := range h.clusters {
			c.Labels["ring"] = []string{"one", "two", "two"}[i%3]
		}
		h.apply(object, schedule(t, object, h))
		for range rapid.IntRange(0, 3).Draw(rt, "changes before") {
			h.change(rt, false)
			h.apply(object, schedule(t, object, h))
		}
		before := len(schedule(t, object, h).Decision.Groups)
		h.change(rt, true)
		result := schedule(t, object, h)
		steps := h.apply(object, result)
		requireSound(rt, result.Decision, true)
		if len(result.Decision.Groups) == before {
			require.LessOrEqual(rt, len(steps), mostWrites+1, "%s", stepsOf(steps))
		}
	})
}

// TestSlicesWhileClustersGoOneByOne removes all clusters one by one in random order, and adds them in another order. Each
// change must need about one write.
func TestSlicesWhileClustersGoOneByOne(t *testing.T) {
	h, object, s := newHub(numbered(0, universe)...), placed(t, plain), newScheduler(t)
	random := rand.New(rand.NewPCG(1, 2))
	all, writes, changes := slices.Clone(h.clusters), 0, 0
	settle := func() {
		result := decide(t, s, object, h)
		n, of := len(h.apply(object, result)), len(result.Decision.Groups[0].Slices)
		if changes++; changes > 1 {
			require.LessOrEqual(t, n, mostWrites)
			writes += n
		}
		require.True(t, of == max(1, (len(h.clusters)+99)/100) || of > mostWrites && 80*of < len(h.clusters), "%d of %d", of, len(h.clusters))
	}
	settle()
	for len(h.clusters) > 0 {
		i := random.IntN(len(h.clusters))
		h.clusters = slices.Delete(slices.Clone(h.clusters), i, i+1)
		settle()
	}
	for _, i := range random.Perm(universe) {
		h.clusters = append(slices.Clone(h.clusters), all[i])
		settle()
	}
	require.Less(t, writes, 2*universe+40)
	t.Logf("%d writes for %d changes", writes, changes-1)
}

// plain is a spec without prioritizers, so its decisions depend only on the set of clusters.
const plain = "prioritizerPolicy: {mode: Exact}\n"

const (
	canary = plain + `decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: one}}}}]}}`
	groups = plain + `decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 60}}`
)

// stepsOf returns each step as text.
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

// TestSlicesInOrderOfScores checks that clusters are sorted by score across all slices of a group, if sortBy is Score.
func TestSlicesInOrderOfScores(t *testing.T) {
	h, object := newHub(numbered(0, 250)...), placed(t, "sortBy: Score\nscoreRateLimit: 0s\n"+exactly()+addOn("r", "s", 1))
	for i, c := range h.clusters {
		h.score(c.Name, "r", map[string]int32{"s": int32(i%7 - 3)})
	}
	for _, change := range []func(){func() {}, func() { h.clusters = h.clusters[9:] }, func() { h.score("c0100", "r", map[string]int32{"s": 90}) }} {
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
