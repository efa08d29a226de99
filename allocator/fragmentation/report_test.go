// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/cases"
)

func block(devices, asked, now, packed, idle int) Shape {
	return Shape{Class: "blocks", Constraint: "block", Devices: devices, Asked: asked, Now: Count{Sets: now}, Packed: Count{Sets: packed}, Idle: Count{Sets: idle}}
}

// Two single devices on two nodes prevent two blocks of eight. On the same node they would prevent one block.
func TestReport(t *testing.T) {
	problem, nodes := clusterOf(3, has("a", "node-1", 0), of(has("b", "node-2", 5), "pod-b"), wants("waits", 8), wants("small", 2))
	report := reportOn(t, problem, nodes, Options{})
	require.Equal(t, &Report{
		Nodes: 3, Claims: 2,
		Shapes: []Shape{block(8, 1, 1, 2, 3), block(2, 1, 10, 11, 12)},
	}, report)
	// After moving one device, as many sets fit now as the first report promised for packing.
	problem, nodes = clusterOf(3, has("a", "node-2", 4), has("b", "node-2", 5), wants("waits", 8), wants("small", 2))
	require.Equal(t, []Shape{block(8, 1, 2, 2, 3), block(2, 1, 11, 11, 12)}, reportOn(t, problem, nodes, Options{}).Shapes)
}

// Packing keeps the claims of a pod on one node, also if other pods share some of the claims.
func TestGroups(t *testing.T) {
	problem, nodes := clusterOf(2,
		of(has("a", "node-1", 0), "x"), of(has("b", "node-1", 1), "x", "y"), of(has("c", "node-1", 2), "y"), has("d", "node-1", 3),
		of(has("elsewhere", "node-9", 0), "z"), wants("waits", 8))
	c := &cluster{problem: problem, nodes: nodes, places: poolNodesOf(problem.Slices, nodes)}
	groups := c.groupsOf(nil)
	require.Len(t, groups, 3)
	require.Len(t, groups[0].claims, 3)
	require.Equal(t, 3, groups[0].needs())
	require.False(t, groups[1].pinned)
	require.True(t, groups[2].pinned, "the node is not among those that matter")
}

func TestAdminAccessTakesNothing(t *testing.T) {
	admin := has("admin", "node-1", 3)
	admin.Spec.Devices.Requests[0].Exactly.AdminAccess = ptr.To(true)
	admin.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	problem, nodes := clusterOf(1, admin, wants("waits", 8))
	problem.Features.AdminAccess = true
	report := reportOn(t, problem, nodes, Options{})
	require.Equal(t, 0, report.Claims)
	require.Equal(t, []Shape{block(8, 1, 1, 1, 1)}, report.Shapes)
}

// If no claim asks for a shape, the report contains the usual counts that fit on some node.
func TestShapesWithoutRequests(t *testing.T) {
	problem, nodes := clusterOf(1, has("a", "node-1", 0))
	require.Equal(t, []Shape{block(8, 0, 0, 0, 1), block(4, 0, 1, 1, 2), block(2, 0, 3, 3, 4)}, reportOn(t, problem, nodes, Options{}).Shapes)
}

// With the option Usual, the report contains the usual counts although claims ask for others. They don't change other counts.
// If the budget is exhausted, they are left out first.
func TestUsualShapes(t *testing.T) {
	problem, nodes := clusterOf(1, has("a", "node-1", 0), wants("b", 3), wants("c", 4))
	all := reportOn(t, problem, nodes, Options{Usual: true}).Shapes
	require.Equal(t, []int{8, 4, 3, 2}, sizes(all))
	asked := reportOn(t, problem, nodes, Options{}).Shapes
	require.Equal(t, asked, slices.DeleteFunc(all, func(s Shape) bool { return s.Asked == 0 }))

	halfway := 0
	for steps := range int64(40) {
		problem.Options = []allocator.Option{allocator.WithAttemptBudget(allocator.NewSeparateBudgets(allocator.Budget{Cost: 1_000_000, Steps: steps}, allocator.Budget{Cost: 1_000_000, Steps: steps}))}
		counted := slices.DeleteFunc(reportOn(t, problem, nodes, Options{Usual: true}).Shapes, func(s Shape) bool { return s.Error != "" || s.Now.AtLeast })
		if len(counted) == 2 {
			halfway++
			require.Equal(t, []int{4, 3}, sizes(counted), "%d steps", steps)
		}
	}
	require.Positive(t, halfway)
}

func sizes(shapes []Shape) []int {
	var result []int
	for _, shape := range shapes {
		result = append(result, shape.Devices)
	}
	return result
}

func TestOptions(t *testing.T) {
	problem, nodes := clusterOf(1, wants("a", 8), wants("b", 8))
	problem.Classes = classes{aligned("blocks", "block", "other"), aligned("more", "block")}
	require.Equal(t, []Shape{block(8, 2, 1, 1, 1), block(1, 0, 8, 8, 8)}, reportOn(t, problem, nodes, Options{Class: "blocks", Constraint: "block", Counts: []int{1, 8}}).Shapes)
	require.Len(t, reportOn(t, problem, nodes, Options{Constraint: "block"}).Shapes, 1+3)
	require.Empty(t, reportOn(t, problem, nodes, Options{Class: "none"}).Shapes)
}

func TestShapesAreBounded(t *testing.T) {
	var claims []*resourceapi.ResourceClaim
	for i := range 30 {
		claims = append(claims, wants(fmt.Sprint(i), int64(2+i)))
	}
	problem, nodes := clusterOf(1, append(claims, wants("again", 5))...)
	shapes := reportOn(t, problem, nodes, Options{}).Shapes
	require.Len(t, shapes, maxShapesOfClass)
	require.Contains(t, shapes, block(5, 2, 1, 1, 1))

	// In one namespace, two claims ask for each of many shapes. The shape of one claim in another namespace is still counted.
	more := wants("more", 2)
	more.Namespace = "more"
	var flood []*resourceapi.ResourceClaim
	for i := range 30 {
		flood = append(flood, wants(fmt.Sprint(i), int64(3+i)), wants(fmt.Sprint(i, "again"), int64(3+i)))
	}
	problem, nodes = clusterOf(1, append(flood, more)...)
	shapes = reportOn(t, problem, nodes, Options{}).Shapes
	require.Len(t, shapes, maxShapesOfClass)
	require.Contains(t, shapes, block(2, 1, 4, 4, 4))

	// Shapes that claims ask for are included even if there are very many classes.
	problem, nodes = clusterOf(1, wants("a", 8))
	var many classes
	for i := range maxShapes {
		many = append(many, aligned(fmt.Sprint("a", i), "block"))
	}
	problem.Classes = append(many, aligned("blocks", "block"))
	shapes = reportOn(t, problem, nodes, Options{}).Shapes
	require.LessOrEqual(t, len(shapes), maxShapes)
	require.Equal(t, block(8, 1, 1, 1, 1), shapes[len(shapes)-1])
	require.True(t, slices.IsSortedFunc(shapes, func(a, b Shape) int { return cmp.Compare(a.Class, b.Class) }))
}

// A group that fits on no node keeps its devices, and the other groups are packed.
func TestClaimsThatFitNowhere(t *testing.T) {
	lost := has("lost", "node-1", 0)
	lost.Spec.Devices.Requests[0].Exactly.DeviceClassName = "gone"
	problem, nodes := clusterOf(3, lost, has("b", "node-2", 5), wants("waits", 8))
	report := reportOn(t, problem, nodes, Options{})
	require.Equal(t, []Shape{block(8, 1, 1, 2, 3)}, report.Shapes)
}

// If the budget is exhausted, the report is incomplete but not wrong.
func TestBudget(t *testing.T) {
	problem, nodes := clusterOf(2, has("a", "node-1", 0), has("b", "node-2", 5), wants("waits", 8))
	config := problem.Classes.(classes)[0].Spec.Config[0].Opaque
	config.Parameters.Raw = []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "block",
		"expression": "devices.map(d, d.attributes['mla.example.com'].index * d.attributes['mla.example.com'].index % 5).sum() % 7 == 5"}`)
	for _, slice := range problem.Slices {
		for i := 8; i < 32; i++ {
			more := slice.Spec.Devices[i%8]
			more.Name = fmt.Sprintf("mla-%d", i)
			more.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(int64(i))}}
			slice.Spec.Devices = append(slice.Spec.Devices, more)
		}
	}
	problem.Options = []allocator.Option{allocator.WithAttemptBudget(allocator.NewSeparateBudgets(allocator.Budget{Cost: 1, Steps: 1}, allocator.Budget{Cost: 1, Steps: 1}))}
	report := reportOn(t, problem, nodes, Options{})
	require.Equal(t, Count{AtLeast: true}, report.Shapes[0].Now)
	require.Equal(t, Count{AtLeast: true}, report.Shapes[0].Packed)
	problem.Options = nil
	report = reportOn(t, problem, nodes, Options{Counts: []int{2}})
	require.Equal(t, Count{Sets: 24}, report.Shapes[0].Now, "with a budget there is an answer")
}

// If packing can't allow more sets, it is skipped, because packing takes most of the time.
func TestMayGain(t *testing.T) {
	unknown := block(8, 0, 1, 1, 1)
	unknown.Idle.AtLeast = true
	failed := block(8, 0, 0, 0, 1)
	failed.Error = "no such key"
	for name, test := range map[string]struct {
		shapes []Shape
		want   bool
	}{
		"no shape":          {nil, false},
		"idle":              {[]Shape{block(8, 0, 2, 2, 2)}, false},
		"not known":         {[]Shape{unknown}, true},
		"failed":            {[]Shape{failed}, false},
		"something is used": {[]Shape{block(8, 0, 2, 2, 2), block(4, 0, 3, 3, 4)}, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, (&cluster{shapes: test.shapes}).mayGain()) })
	}
	problem, nodes := clusterOf(2, has("a", "node-1", 0), has("b", "node-2", 5))
	problem.Classes = classes{aligned("blocks")}
	require.Equal(t, &Report{Nodes: 2, Claims: 2}, reportOn(t, problem, nodes, Options{CacheBytes: 1 << 20}), "nobody defines a constraint")
}

// Packing moves neither claims that must stay nor the other claims in their groups. It packs the other groups around them.
func TestClaimsThatStay(t *testing.T) {
	problem, nodes := clusterOf(3, of(has("a", "node-1", 0), "x"), of(has("b", "node-1", 1), "x"), has("c", "node-2", 5), wants("waits", 8))
	// Allocating this claim would fail. The test shows that the claim is not evaluated.
	problem.Allocated[1].Spec.Devices.Requests[0].Exactly.DeviceClassName = "gone"
	stays := func(claim *resourceapi.ResourceClaim) bool { return claim.Name == "b" }
	report := reportOn(t, problem, nodes, Options{Stays: stays})
	require.Equal(t, 2, report.Pinned)
	require.Equal(t, []Shape{block(8, 1, 1, 2, 3)}, report.Shapes)
	report = reportOn(t, problem, nodes, Options{Stays: func(*resourceapi.ResourceClaim) bool { return true }})
	require.Equal(t, 3, report.Pinned)
	require.Equal(t, []Shape{block(8, 1, 1, 1, 3)}, report.Shapes)
}

func TestContextEnds(t *testing.T) {
	problem, nodes := clusterOf(2, has("a", "node-1", 0), wants("waits", 8))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := New(ctx, problem, nodes, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// In random clusters, Packed is at least Now and at most Idle.
func TestPackedIsBetweenNowAndIdle(t *testing.T) {
	packs := 0
	cases.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "nodes")
		var claims []*resourceapi.ResourceClaim
		for node := range n {
			for i := 0; i < 8; {
				size := rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(rt, "size")
				if i%size == 0 && rapid.IntRange(0, 2).Draw(rt, "in use") == 0 {
					devices := make([]int, size)
					for k := range devices {
						devices[k] = i + k
					}
					claims = append(claims, has(fmt.Sprintf("c-%d-%d", node, i), fmt.Sprintf("node-%d", node+1), devices...))
					i += size
				} else {
					i++
				}
			}
		}
		problem, nodes := clusterOf(n, append(claims, wants("eight", 8), wants("four", 4))...)
		report := reportOn(rt, problem, nodes, Options{})
		for _, s := range report.Shapes {
			require.LessOrEqual(rt, s.Now.Sets, s.Packed.Sets)
			require.LessOrEqual(rt, s.Packed.Sets, s.Idle.Sets)
			require.False(rt, s.Now.AtLeast || s.Idle.AtLeast)
			if s.Now.Sets < s.Packed.Sets {
				packs++
			}
		}
	})
	require.Positive(t, packs)
}
