// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/internal/testing/policy"
)

// takeStock takes stock of a node twice, with an allocator each: the way in which
// scheduling cycles follow each other.
func takeStock(t *testing.T, cache *Cache, node *v1.Node, first, second scenario) (before, after *inventory.Inventory) {
	t.Helper()
	before, err := first.with(WithCache(cache)).allocator(t).inventoryOf(node)
	require.NoError(t, err)
	after, err = second.with(WithCache(cache)).allocator(t).inventoryOf(node)
	require.NoError(t, err)
	return before, after
}

// with adds options.
func (s scenario) with(opts ...Option) scenario {
	s.opts = append(append([]Option{}, s.opts...), opts...)
	return s
}

func inventoryNames(i *inventory.Inventory) []string {
	names := []string{}
	for _, c := range i.Candidates {
		names = append(names, c.ID.String())
	}
	return names
}

// As long as the slices of a node are the same objects its inventory is too.
func TestInventoriesAreKept(t *testing.T) {
	one, two, other := slice("1", ring(2)...).pool("pool-1", 1, 2), slice("2", newDevice("x", nil)).pool("pool-1", 1, 2), slice("3", ring(3)...).pool("pool-2", 1, 1).onNode("node-2")
	others := []*sliceBuilder{other, one, two}
	whole := []string{"mla.example.com/pool-1/mla-0", "mla.example.com/pool-1/mla-1", "mla.example.com/pool-1/x"}
	replaced := &sliceBuilder{two.DeepCopy()}
	renamed := &sliceBuilder{two.DeepCopy()}
	renamed.Spec.Devices[0].Name = "y"
	next := &sliceBuilder{two.DeepCopy()}
	next.pool("pool-1", 2, 1)
	for name, test := range map[string]struct {
		second scenario
		kept   bool
		want   []string
	}{
		"same slices":       {scenario{slices: others}, true, whole},
		"in use":            {scenario{slices: others, inUse: []string{"mla-0"}}, true, whole},
		"other's replaced":  {scenario{slices: []*sliceBuilder{one, two, slice("3", ring(3)...).pool("pool-2", 1, 1).onNode("node-2")}}, true, whole},
		"other's added":     {scenario{slices: append([]*sliceBuilder{slice("4", ring(1)...).onNode("node-3").pool("p", 1, 1)}, others...)}, true, whole},
		"other's gone":      {scenario{slices: []*sliceBuilder{one, two}}, true, whole},
		"replaced":          {scenario{slices: []*sliceBuilder{other, one, replaced}}, false, whole},
		"replaced, changed": {scenario{slices: []*sliceBuilder{other, one, renamed}}, false, []string{whole[0], whole[1], "mla.example.com/pool-1/y"}},
		"next generation":   {scenario{slices: []*sliceBuilder{other, one, next}}, false, whole[2:]},
		"added": {
			scenario{slices: append([]*sliceBuilder{slice("0", newDevice("z", nil)).pool("pool-0", 1, 1)}, others...)}, false,
			append([]string{"mla.example.com/pool-0/z"}, whole...),
		},
		"removed":        {scenario{slices: []*sliceBuilder{other, one}}, false, []string{}},
		"all are gone":   {scenario{slices: []*sliceBuilder{other}}, false, []string{}},
		"other features": {scenario{slices: others, features: listsOn}, false, whole},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := takeStock(t, NewCache(), newNode(nodeName), scenario{slices: others}, test.second)
			require.Equal(t, whole, inventoryNames(before))
			require.Equal(t, test.want, inventoryNames(after))
			require.Equal(t, test.kept, before == after)
		})
	}
}

// Features say what is seen of the same slices.
func TestInventoriesOfFeatures(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", newDevice("x", nil, shared))}}
	without := s
	without.features = with(func(f *structured.Features) { f.ConsumableCapacity = false })
	cache := NewCache()
	before, after := takeStock(t, cache, newNode(nodeName), s, without)
	require.True(t, before.Candidates[0].Shared)
	require.False(t, after.Candidates[0].Shared)
	again, _ := takeStock(t, cache, newNode(nodeName), s, s)
	require.True(t, again.Candidates[0].Shared)
}

// What depends on more than the slices with the node's name is kept as long as all slices
// and the node are the same objects.
func TestInventoriesThatDependOnMore(t *testing.T) {
	perDevice := func(b *sliceBuilder) *sliceBuilder {
		return b.edit(func(s *resourceapi.ResourceSliceSpec) {
			s.NodeName, s.PerDeviceNodeSelection = ptr.To(nodeName), ptr.To(true)
		})
	}
	for name, slices := range map[string][]*sliceBuilder{
		"node selector":         {slice("1", ring(1)...).onNodesWith("big")},
		"all nodes":             {slice("1", ring(1)...).everywhere()},
		"per device":            {slice("1", newDevice("mla-0", nil, onAny)).perDevice()},
		"per device, with name": {perDevice(slice("1", newDevice("mla-0", nil, onAny)))},
		"all nodes, elsewhere":  {slice("1", ring(1)...), slice("2").everywhere().pool("pool-2", 1, 1)},
		"slices elsewhere":      {slice("1", ring(1)...).pool("pool-1", 1, 2), slice("2").pool("pool-1", 1, 2).onNode("node-2")},
		"incomplete":            {slice("1", ring(1)...).pool("pool-1", 1, 2)},
		"too many slices":       {slice("1", ring(1)...), slice("2", newDevice("x", nil))},
	} {
		t.Run(name, func(t *testing.T) {
			cache, node, s := NewCache(), newNode(nodeName, "big"), scenario{slices: slices}
			before, after := takeStock(t, cache, node, s, s)
			require.Same(t, before, after)
			require.NotEmpty(t, before.Pools)

			onMoreFeatures, _ := takeStock(t, cache, node, scenario{slices: slices, features: listsOn}, s)
			require.NotSame(t, before, onMoreFeatures)

			relabelled := newNode(nodeName, "big")
			again, _ := takeStock(t, cache, relabelled, s, s)
			require.NotSame(t, before, again, "another version of the node")
			require.Equal(t, inventoryNames(before), inventoryNames(again))

			elsewhere := scenario{slices: append([]*sliceBuilder{slice("0", newDevice("z", nil)).pool("pool-0", 1, 1).onNode("node-3")}, slices...)}
			again, _ = takeStock(t, cache, relabelled, elsewhere, s)
			require.NotSame(t, before, again, "more slices")
			require.Equal(t, inventoryNames(before), inventoryNames(again))
		})
	}
}

// A node whose labels change has other devices at once.
func TestInventoriesFollowLabels(t *testing.T) {
	s, cache := scenario{slices: []*sliceBuilder{slice("1", ring(2)...).onNodesWith("big")}}, NewCache()
	for range 2 {
		with, _ := takeStock(t, cache, newNode(nodeName, "big"), s, s)
		require.Len(t, with.Candidates, 2)
		without, _ := takeStock(t, cache, newNode(nodeName), s, s)
		require.Empty(t, without.Candidates)
	}
}

// So what changes elsewhere is noticed.
func TestInventoriesFollowOtherNodes(t *testing.T) {
	local := slice("1", ring(2)...).pool("pool-1", 1, 2)
	remote := slice("2", newDevice("x", nil)).pool("pool-1", 1, 2).onNode("node-2")
	newer := slice("2", newDevice("x", nil)).pool("pool-1", 2, 1).onNode("node-2")
	cache := NewCache()
	for _, step := range []struct {
		slices []*sliceBuilder
		want   int
	}{
		{[]*sliceBuilder{local}, 0}, // incomplete
		{[]*sliceBuilder{local, remote}, 2},
		{[]*sliceBuilder{local, remote, newer}, 0}, // obsolete
		{[]*sliceBuilder{local, remote}, 2},
		{[]*sliceBuilder{local}, 0},
	} {
		i, err := scenario{slices: step.slices}.with(WithCache(cache)).allocator(t).inventoryOf(newNode(nodeName))
		require.NoError(t, err)
		require.Len(t, i.Candidates, step.want)
	}

	labelled := scenario{slices: []*sliceBuilder{slice("1", ring(1)...).onNodesWith("big")}}.with(WithCache(cache))
	with, err := labelled.allocator(t).inventoryOf(newNode(nodeName, "big"))
	require.NoError(t, err)
	require.Len(t, with.Candidates, 1)
	without, err := labelled.allocator(t).inventoryOf(newNode(nodeName))
	require.NoError(t, err)
	require.Empty(t, without.Candidates)
}

// An error is no inventory.
func TestInventoriesThatFail(t *testing.T) {
	broken := nodesWith("big")
	broken.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Broken"
	perDevice := slice("1", newDevice("x", nil, func(d *resourceapi.Device) { d.NodeSelector = broken })).perDevice()
	s := scenario{slices: []*sliceBuilder{perDevice}}.with(WithCache(NewCache()))
	for range 2 {
		_, err := s.allocator(t).inventoryOf(newNode(nodeName, "big"))
		require.ErrorContains(t, err, "gather pool information: ResourceSlice 1: device x: node selection")
	}
}

// Nodes of one hardware type share it, whatever they and their devices are called.
func TestHardwareIsWhatExpressionsSee(t *testing.T) {
	original := func() []*sliceBuilder {
		return []*sliceBuilder{slice("1", newDevice("a", attrs{"x": 1}, policy.Having("memory", "1Gi", nil)), newDevice("b", attrs{"x": 2}))}
	}
	edited := func(edit func(*sliceBuilder)) []*sliceBuilder {
		result := original()
		edit(result[0])
		return result
	}
	cache := NewCache()
	viewOf := func(slices []*sliceBuilder) *view.View {
		i, err := scenario{slices: slices}.with(WithCache(cache)).allocator(t).inventoryOf(newNode(nodeName))
		require.NoError(t, err)
		return cache.viewOf(i, view.AnyAttribute)
	}
	first := viewOf(original())
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		same   bool
	}{
		"copy":            {original(), true},
		"other names":     {edited(func(b *sliceBuilder) { b.Name, b.Spec.Pool.Name, b.Spec.Devices[0].Name = "2", "pool-2", "c" }), true},
		"generation":      {edited(func(b *sliceBuilder) { b.pool("pool-1", 7, 1) }), true},
		"taints":          {edited(func(b *sliceBuilder) { b.Spec.Devices[0].Taints = []resourceapi.DeviceTaint{{Key: "k"}} }), true},
		"driver":          {edited(func(b *sliceBuilder) { b.driver("other.example.com") }), false},
		"attribute":       {edited(func(b *sliceBuilder) { b.Spec.Devices[1] = newDevice("b", attrs{"x": 3}) }), false},
		"attribute type":  {edited(func(b *sliceBuilder) { b.Spec.Devices[1] = newDevice("b", attrs{"x": "2"}) }), false},
		"attribute name":  {edited(func(b *sliceBuilder) { b.Spec.Devices[1] = newDevice("b", attrs{"y": 2}) }), false},
		"capacity":        {edited(func(b *sliceBuilder) { policy.Having("memory", "2Gi", nil)(&b.Spec.Devices[0]) }), false},
		"capacity policy": {edited(func(b *sliceBuilder) { policy.Having("memory", "1Gi", policy.Default("1"))(&b.Spec.Devices[0]) }), false},
		"shared":          {edited(func(b *sliceBuilder) { shared(&b.Spec.Devices[0]) }), false},
		"one more":        {edited(func(b *sliceBuilder) { b.Spec.Devices = append(b.Spec.Devices, newDevice("c", nil)) }), false},
		"one less":        {edited(func(b *sliceBuilder) { b.Spec.Devices = b.Spec.Devices[:1] }), false},
		"order":           {edited(func(b *sliceBuilder) { b.Spec.Devices[0], b.Spec.Devices[1] = b.Spec.Devices[1], b.Spec.Devices[0] }), false},
		"in two slices": {
			[]*sliceBuilder{slice("1", original()[0].Spec.Devices[0]).pool("p", 1, 2), slice("2", original()[0].Spec.Devices[1]).pool("p", 1, 2)}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := viewOf(test.slices)
			require.Equal(t, test.same, first == other)
			require.Same(t, other, viewOf(test.slices))
		})
	}
}
