// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/internal/testing/cases"
)

// ranks is a group whose pods run on some nodes, and wait for the others. cliques has the clique of each node. runs has the index of
// the pod on each node, or -1.
type ranks struct {
	size          int
	cliques, runs []int
	waiting       []int
}

// canBeSeated tries all ways to assign the waiting pods to free nodes. together requires that no two pods of a segment are in
// different cliques, unless the segment is torn already or needs no further pod.
func (r *ranks) canBeSeated(together bool) bool {
	on := slices.Clone(r.runs)
	torn := r.torn(r.runs)
	var seat func(i int) bool
	seat = func(i int) bool {
		if i == len(r.waiting) {
			counts := map[string]int64{}
			for node, pod := range on {
				if pod >= 0 {
					counts[fmt.Sprint(r.cliques[node])]++
				}
			}
			if !library.AreSegments(counts, int64(r.size)) {
				return false
			}
			for segment := range r.torn(on) {
				if together && !torn[segment] {
					return false
				}
			}
			return true
		}
		for node := range on {
			if on[node] < 0 {
				on[node] = r.waiting[i]
				if seat(i + 1) {
					return true
				}
				on[node] = -1
			}
		}
		return false
	}
	return seat(0)
}

// torn returns the segments with pods in several cliques.
func (r *ranks) torn(on []int) map[int]bool {
	cliqueOf, torn := map[int]int{}, map[int]bool{}
	for node, pod := range on {
		if pod < 0 {
			continue
		}
		if clique, known := cliqueOf[pod/r.size]; known && clique != r.cliques[node] {
			torn[pod/r.size] = true
		}
		cliqueOf[pod/r.size] = r.cliques[node]
	}
	return torn
}

// hasGaps reports whether a segment before the last lacks a pod.
func (r *ranks) hasGaps() bool {
	counts := map[int]int{}
	for _, pod := range slices.Concat(r.runs, r.waiting) {
		if pod >= 0 {
			counts[pod/r.size]++
		}
	}
	delete(counts, slices.Max(slices.Collect(maps.Keys(counts))))
	return slices.ContainsFunc(slices.Collect(maps.Values(counts)), func(n int) bool { return n != r.size })
}

// TestSeatsSameAsExhaustive compares groups with running pods with trying all assignments. Some numbers of pods are missing.
func TestSeatsSameAsExhaustive(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	kept, apart, none := 0, 0, 0
	cases.CheckN(t, cases.Of(150, 5000), func(t *rapid.T) {
		r := &ranks{size: rapid.IntRange(1, 3).Draw(t, "size")}
		indices := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(t, "indices")[:rapid.IntRange(2, 7).Draw(t, "pods")]
		if rapid.Bool().Draw(t, "all numbers") {
			slices.Sort(indices)
			for i := range indices {
				indices[i] = i
			}
		}
		running := rapid.IntRange(1, len(indices)-1).Draw(t, "running")
		indices = rapid.Permutation(indices).Draw(t, "order")
		nodes := make([]nodeset.Node, rapid.IntRange(running, 8).Draw(t, "nodes"))
		for i := range nodes {
			r.cliques, r.runs = append(r.cliques, rapid.IntRange(0, 2).Draw(t, "clique")), append(r.runs, -1)
			nodes[i] = nodeset.Node{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"clique": fmt.Sprint(r.cliques[i])}, Takes: []bool{true}}
			if i < running {
				r.runs[i], nodes[i].Placed, nodes[i].Takes = indices[i], true, []bool{false}
				nodes[i].Pods = []*v1.Pod{numbered(indices[i], "worker")}
			}
		}
		r.waiting = indices[running:]
		var waiting []*v1.Pod
		for _, index := range r.waiting {
			waiting = append(waiting, numbered(index, "worker"))
		}
		slices.SortFunc(waiting, nodeset.ComparePods)
		group := &nodeset.Group{Kinds: []int{len(waiting)}, Waiting: [][]*v1.Pod{waiting}, Constraint: &v1alpha1.NodeSetConstraint{
			Name: "set", PodsPerNode: 1, Expression: fmt.Sprintf("nodes.segments(%d, n, n.labels.clique)", r.size),
		}}
		search := &nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Compiled: compiler(chooser)}
		choice, err := search.Choose(t.Context())
		require.NoError(t, err)
		on := slices.Clone(r.runs)
		if choice != nil {
			for i, member := range search.Seats(t.Context(), choice)[0] {
				node := choice.Members[member].Node
				require.Negative(t, on[node])
				index, _ := nodeset.IndexOf(waiting[i])
				on[node] = int(index)
			}
		}
		before := r.torn(r.runs)
		isKept := true
		for segment := range r.torn(on) {
			isKept = isKept && before[segment]
		}
		switch {
		case r.canBeSeated(true):
			require.NotNil(t, choice, "%+v: pods can be seated together", r)
			require.True(t, isKept, "%+v: %v", r, on)
			kept++
		case r.canBeSeated(false):
			apart++
			// Only segments of pods without gaps must stay together.
			require.Equal(t, r.hasGaps(), choice != nil, "%+v", r)
		default:
			require.Nil(t, choice, "%+v", r)
			none++
		}
	})
	t.Logf("%d times together, %d times apart only, %d times none", kept, apart, none)
	require.Positive(t, kept)
	require.Positive(t, apart)
	require.Positive(t, none)
}
