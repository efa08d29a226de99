// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/view"
)

// takeStock returns the inventories of a node in two consecutive scheduling cycles, each cycle with its own allocator.
func takeStock(t *testing.T, cache *Cache, node *v1.Node, first, second scenario) (before, after *inventory.Inventory) {
	t.Helper()
	before, err := first.with(WithCache(cache)).allocator(t).planner.InventoryOf(node)
	require.NoError(t, err)
	after, err = second.with(WithCache(cache)).allocator(t).planner.InventoryOf(node)
	require.NoError(t, err)
	return before, after
}

// with returns a copy of the scenario with additional options.
func (s scenario) with(opts ...option) scenario {
	s.Options = append(append([]option{}, s.Options...), opts...)
	return s
}

func inventoryNames(i *inventory.Inventory) []string {
	names := []string{}
	for _, c := range i.Candidates {
		names = append(names, c.ID.String())
	}
	return names
}

// The cache reuses the inventory of a node as long as the slices of the node are the same objects.
func TestInventoriesAreKept(t *testing.T) {
	one, two, other := slice("1", ring(2)...).Pool("pool-1", 1, 2), slice("2", newDevice("x", nil)).Pool("pool-1", 1, 2), slice("3", ring(3)...).Pool("pool-2", 1, 1).OnNode("node-2")
	others := []*sliceBuilder{other, one, two}
	whole := []string{"mla.example.com/pool-1/mla-0", "mla.example.com/pool-1/mla-1", "mla.example.com/pool-1/x"}
	replaced := &sliceBuilder{ResourceSlice: two.DeepCopy()}
	renamed := &sliceBuilder{ResourceSlice: two.DeepCopy()}
	renamed.Spec.Devices[0].Name = "y"
	next := &sliceBuilder{ResourceSlice: two.DeepCopy()}
	next.Pool("pool-1", 2, 1)
	for name, test := range map[string]struct {
		second scenario
		kept   bool
		want   []string
	}{
		"same slices":       {scenario{fixture.Scenario{Slices: others}}, true, whole},
		"in use":            {scenario{fixture.Scenario{Slices: others, InUse: []string{"mla-0"}}}, true, whole},
		"other's replaced":  {scenario{fixture.Scenario{Slices: []*sliceBuilder{one, two, slice("3", ring(3)...).Pool("pool-2", 1, 1).OnNode("node-2")}}}, true, whole},
		"other's added":     {scenario{fixture.Scenario{Slices: append([]*sliceBuilder{slice("4", ring(1)...).OnNode("node-3").Pool("p", 1, 1)}, others...)}}, true, whole},
		"other's gone":      {scenario{fixture.Scenario{Slices: []*sliceBuilder{one, two}}}, true, whole},
		"replaced":          {scenario{fixture.Scenario{Slices: []*sliceBuilder{other, one, replaced}}}, false, whole},
		"replaced, changed": {scenario{fixture.Scenario{Slices: []*sliceBuilder{other, one, renamed}}}, false, []string{whole[0], whole[1], "mla.example.com/pool-1/y"}},
		"next generation":   {scenario{fixture.Scenario{Slices: []*sliceBuilder{other, one, next}}}, false, whole[2:]},
		"added": {
			scenario{fixture.Scenario{Slices: append([]*sliceBuilder{slice("0", newDevice("z", nil)).Pool("pool-0", 1, 1)}, others...)}}, false,
			append([]string{"mla.example.com/pool-0/z"}, whole...),
		},
		"removed":        {scenario{fixture.Scenario{Slices: []*sliceBuilder{other, one}}}, false, []string{}},
		"all are gone":   {scenario{fixture.Scenario{Slices: []*sliceBuilder{other}}}, false, []string{}},
		"other features": {scenario{fixture.Scenario{Slices: others, Features: listsOn}}, false, whole},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := takeStock(t, NewCache(), newNode(nodeName), scenario{fixture.Scenario{Slices: others}}, test.second)
			require.Equal(t, whole, inventoryNames(before))
			require.Equal(t, test.want, inventoryNames(after))
			require.Equal(t, test.kept, before == after)
		})
	}
}

// An inventory may depend on slices without the node's name. It is then reused while all slices and the node are the same
// objects.
func TestInventoriesThatDependOnMore(t *testing.T) {
	perDevice := func(b *sliceBuilder) *sliceBuilder {
		return b.Edit(func(s *resourceapi.ResourceSliceSpec) {
			s.NodeName, s.PerDeviceNodeSelection = ptr.To(nodeName), ptr.To(true)
		})
	}
	for name, slices := range map[string][]*sliceBuilder{
		"node selector":         {slice("1", ring(1)...).OnNodesWith("big")},
		"all nodes":             {slice("1", ring(1)...).Everywhere()},
		"per device":            {slice("1", newDevice("mla-0", nil, onAny)).PerDevice()},
		"per device, with name": {perDevice(slice("1", newDevice("mla-0", nil, onAny)))},
		"all nodes, elsewhere":  {slice("1", ring(1)...), slice("2").Everywhere().Pool("pool-2", 1, 1)},
		"slices elsewhere":      {slice("1", ring(1)...).Pool("pool-1", 1, 2), slice("2").Pool("pool-1", 1, 2).OnNode("node-2")},
		"incomplete":            {slice("1", ring(1)...).Pool("pool-1", 1, 2)},
		"too many slices":       {slice("1", ring(1)...), slice("2", newDevice("x", nil))},
	} {
		t.Run(name, func(t *testing.T) {
			cache, node, s := NewCache(), newNode(nodeName, "big"), scenario{fixture.Scenario{Slices: slices}}
			before, after := takeStock(t, cache, node, s, s)
			require.Same(t, before, after)
			require.NotEmpty(t, before.Pools)

			onMoreFeatures, _ := takeStock(t, cache, node, scenario{fixture.Scenario{Slices: slices, Features: listsOn}}, s)
			require.NotSame(t, before, onMoreFeatures)

			relabelled := newNode(nodeName, "big")
			again, _ := takeStock(t, cache, relabelled, s, s)
			require.NotSame(t, before, again, "another version of the node")
			require.Equal(t, inventoryNames(before), inventoryNames(again))

			elsewhere := scenario{fixture.Scenario{Slices: append([]*sliceBuilder{slice("0", newDevice("z", nil)).Pool("pool-0", 1, 1).OnNode("node-3")}, slices...)}}
			again, _ = takeStock(t, cache, relabelled, elsewhere, s)
			require.NotSame(t, before, again, "more slices")
			require.Equal(t, inventoryNames(before), inventoryNames(again))
		})
	}
}

// After the labels of a node change, its inventory contains the devices that match the new labels.
func TestInventoriesFollowLabels(t *testing.T) {
	s, cache := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", ring(2)...).OnNodesWith("big")}}}, NewCache()
	for range 2 {
		with, _ := takeStock(t, cache, newNode(nodeName, "big"), s, s)
		require.Len(t, with.Candidates, 2)
		without, _ := takeStock(t, cache, newNode(nodeName), s, s)
		require.Empty(t, without.Candidates)
	}
}

// A changed slice of another node also changes the inventory if it belongs to the same pool.
func TestInventoriesFollowOtherNodes(t *testing.T) {
	local := slice("1", ring(2)...).Pool("pool-1", 1, 2)
	remote := slice("2", newDevice("x", nil)).Pool("pool-1", 1, 2).OnNode("node-2")
	newer := slice("2", newDevice("x", nil)).Pool("pool-1", 2, 1).OnNode("node-2")
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
		i, err := scenario{fixture.Scenario{Slices: step.slices}}.with(WithCache(cache)).allocator(t).planner.InventoryOf(newNode(nodeName))
		require.NoError(t, err)
		require.Len(t, i.Candidates, step.want)
	}
}

// If an inventory can't be made, the error is not cached.
func TestInventoriesThatFail(t *testing.T) {
	broken := nodesWith("big")
	broken.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Broken"
	perDevice := slice("1", newDevice("x", nil, func(d *resourceapi.Device) { d.NodeSelector = broken })).PerDevice()
	s := scenario{fixture.Scenario{Slices: []*sliceBuilder{perDevice}}}.with(WithCache(NewCache()))
	for range 2 {
		_, err := s.allocator(t).planner.InventoryOf(newNode(nodeName, "big"))
		require.ErrorContains(t, err, "gather pool information: ResourceSlice 1: device x: node selection")
	}
}

// Nodes of one hardware type share a view, regardless of the names of nodes and devices.
func TestViewsIgnoreNames(t *testing.T) {
	const original = "slice 1; device a x=1 memory:1Gi; device b x=2"
	cache := NewCache()
	viewOfNode := func(statements string) *view.View {
		i, err := given(t, statements).with(WithCache(cache)).allocator(t).planner.InventoryOf(newNode(nodeName))
		require.NoError(t, err)
		return plan.ViewOf(cache, i, view.AnyAttribute)
	}
	first := viewOfNode(original)
	for name, test := range map[string]struct {
		statements string
		same       bool
	}{
		"copy":            {original, true},
		"other names":     {"slice 2 pool=pool-2; device c x=1 memory:1Gi; device b x=2", true},
		"generation":      {"slice 1 pool=pool-1/7/1; device a x=1 memory:1Gi; device b x=2", true},
		"taints":          {"slice 1; device a x=1 memory:1Gi +taint=NoSchedule; device b x=2", true},
		"driver":          {"slice 1 driver=other.example.com; device a x=1 memory:1Gi; device b x=2", false},
		"attribute":       {"slice 1; device a x=1 memory:1Gi; device b x=3", false},
		"attribute type":  {`slice 1; device a x=1 memory:1Gi; device b x="2"`, false},
		"attribute name":  {"slice 1; device a x=1 memory:1Gi; device b y=2", false},
		"capacity":        {"slice 1; device a x=1 memory:2Gi; device b x=2", false},
		"capacity policy": {"slice 1; device a x=1 memory:1Gi(default=1); device b x=2", false},
		"shared":          {"slice 1; device a x=1 memory:1Gi +shared; device b x=2", false},
		"one more":        {original + "; device c", false},
		"one less":        {"slice 1; device a x=1 memory:1Gi", false},
		"order":           {"slice 1; device b x=2; device a x=1 memory:1Gi", false},
		"in two slices":   {"slice 1 pool=p/1/2; device a x=1 memory:1Gi; slice 2 pool=p/1/2; device b x=2", false},
	} {
		t.Run(name, func(t *testing.T) {
			other := viewOfNode(test.statements)
			require.Equal(t, test.same, first == other)
			require.Same(t, other, viewOfNode(test.statements))
		})
	}
}

// reading returns the read set with the given attributes of the driver.
func reading(ids ...string) view.ReadSet {
	var read view.ReadSet
	for _, id := range ids {
		read = read.With(view.ReadAttribute(resourceapi.FullyQualifiedName(driver + "/" + id)))
	}
	return read
}

func TestReadSetsOfClaims(t *testing.T) {
	const serial = "device.attributes['" + driver + "'].serial"
	cel := func(expression string) *claimBuilder {
		return claim("c").Want("x", 1).Cel("e").Define("e", expression)
	}
	odd := classOf("odd", serial+" == '1'", index+" % 2 == 1")
	for name, test := range map[string]struct {
		claims []*claimBuilder
		want   view.ReadSet
	}{
		"nothing":                {[]*claimBuilder{claim("c").Want("x", 1)}, view.ReadSet{}},
		"selectors":              {[]*claimBuilder{claim("c").Want("x", 1, index+" > 0", serial+" != ''")}, reading("index", "serial")},
		"class":                  {[]*claimBuilder{claim("c").Want("x", 1).Class("odd")}, reading("index", "serial")},
		"class and selector":     {[]*claimBuilder{claim("c").Want("x", 1, "has(device.attributes['"+driver+"'].rank)").Class("odd")}, reading("index", "rank", "serial")},
		"alternatives":           {[]*claimBuilder{claim("c").FirstAvailable("x", sub("a", 1, index+" == 0"), sub("b", 2, serial+" == ''"))}, reading("index", "serial")},
		"attributes that match":  {[]*claimBuilder{claim("c").Want("x", 2).Match(driver + "/numa").Distinct(driver + "/slot")}, reading("numa", "slot")},
		"constraint":             {[]*claimBuilder{cel(indices + ".sum() > 9")}, reading("index")},
		"several claims":         {[]*claimBuilder{cel("true"), claim("d").Want("x", 1, serial+" == ''"), cel(indices + ".sum() > 9")}, reading("index", "serial")},
		"driver and capacity":    {[]*claimBuilder{claim("c").Want("x", 1, "device.driver == 'x' || device.capacity['x'].memory.isGreaterThan(quantity('1'))")}, view.ReadSet{}},
		"all, by the selector":   {[]*claimBuilder{claim("c").Want("x", 1, "device.attributes[device.driver].serial == ''")}, view.AnyAttribute},
		"all, by the constraint": {[]*claimBuilder{cel("devices.all(d, d.attributes[d.driver].serial == '')"), claim("d").Want("x", 1, index+" > 0")}, view.AnyAttribute},
		"derived":                {[]*claimBuilder{claim("c").Want("x", 1).Derive(color, "'red'").Match(color)}, view.AnyAttribute},
		"no such class":          {[]*claimBuilder{claim("c").Want("x", 1).Class("none")}, view.AnyAttribute},
		"no expression":          {[]*claimBuilder{claim("c").Want("x", 1, "?")}, view.AnyAttribute},
		"no constraint":          {[]*claimBuilder{cel("?")}, view.AnyAttribute},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{fixture.Scenario{Claims: test.claims, Classes: []*resourceapi.DeviceClass{odd}}}
			a, claims := s.allocator(t), s.APIClaims()
			require.Equal(t, test.want, a.planner.PlanFor(claims).Read())
			require.Equal(t, test.want, a.planner.PlanFor(claims).Read(), "remembered")
			require.Equal(t, view.ReadSet{}, a.planner.PlanFor(nil).Read(), "not that of other claims")
		})
	}
	t.Run("unknown types", func(t *testing.T) {
		for _, edit := range []func(*resourceapi.DeviceClaim){
			func(c *resourceapi.DeviceClaim) { c.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{}} },
			func(c *resourceapi.DeviceClaim) { c.Constraints = []resourceapi.DeviceConstraint{{}} },
		} {
			c := claim("c").Want("x", 1)
			edit(&c.Spec.Devices)
			s := scenario{fixture.Scenario{Claims: []*claimBuilder{c}}}
			require.Equal(t, view.AnyAttribute, s.allocator(t).planner.PlanFor(s.APIClaims()).Read())
		}
	})
}

// Nodes share a view, and selectors can't distinguish their devices, if the devices are equal in the attributes that are read.
// Other attributes matter only if upstream's selectors fail because of them.
func TestViewsHoldReadAttributes(t *testing.T) {
	version := func(text string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{VersionValue: &text}
	}
	versions := func(texts ...string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{VersionValues: texts}
	}
	viewOfOne := func(cache *Cache, read view.ReadSet, a attrs) *view.View {
		i, err := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", newDevice("x", a))}}}.with(WithCache(cache)).allocator(t).planner.InventoryOf(newNode(nodeName))
		require.NoError(t, err)
		return plan.ViewOf(cache, i, read)
	}
	for name, test := range map[string]struct {
		one, other attrs
		same       bool
	}{
		"equal":                  {attrs{"serial": "1"}, attrs{"serial": "1"}, true},
		"text":                   {attrs{"serial": "1"}, attrs{"serial": "2"}, true},
		"number":                 {attrs{"serial": 1}, attrs{"serial": 2}, true},
		"bool":                   {attrs{"serial": true}, attrs{"serial": false}, true},
		"texts":                  {attrs{"serial": []string{"1"}}, attrs{"serial": []string{"2", "3"}}, true},
		"numbers":                {attrs{"serial": []int64{1}}, attrs{"serial": []int64{1, 2}}, true},
		"bools":                  {attrs{"serial": []bool{true}}, attrs{"serial": []bool{false}}, true},
		"with domain":            {attrs{"other.example.com/rank": 1}, attrs{"other.example.com/rank": 2}, true},
		"name":                   {attrs{"serial": "1"}, attrs{"number": "1"}, false},
		"one more":               {attrs{"serial": "1"}, attrs{"serial": "1", "number": "1"}, false},
		"type":                   {attrs{"serial": "1"}, attrs{"serial": 1}, false},
		"type of list":           {attrs{"serial": []string{"1"}}, attrs{"serial": []int64{1}}, false},
		"list":                   {attrs{"serial": "1"}, attrs{"serial": []string{"1"}}, false},
		"empty list":             {attrs{"serial": []string{}}, attrs{"serial": []string{"1"}}, true},
		"empty list or none":     {attrs{"serial": []string{}}, attrs{"serial": resourceapi.DeviceAttribute{}}, false},
		"read, empty or none":    {attrs{"rank": []int64{}}, attrs{"rank": resourceapi.DeviceAttribute{}}, false},
		"read, empty lists":      {attrs{"rank": []int64{}}, attrs{"rank": []bool{}}, false},
		"unknown type":           {attrs{"serial": "1"}, attrs{"serial": resourceapi.DeviceAttribute{}}, false},
		"broken version":         {attrs{"serial": version("1.0.0")}, attrs{"serial": version("one")}, false},
		"broken versions":        {attrs{"serial": versions("1.0.0")}, attrs{"serial": versions("one")}, false},
		"read":                   {attrs{"rank": 1}, attrs{"rank": 2}, false},
		"read, with domain":      {attrs{driver + "/rank": 1}, attrs{driver + "/rank": 2}, false},
		"read, in two spellings": {attrs{driver + "/rank": 1}, attrs{"rank": 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache()
			require.Equal(t, test.same, viewOfOne(cache, reading("rank"), test.one) == viewOfOne(cache, reading("rank"), test.other))
			equal := name == "equal"
			require.Equal(t, equal, viewOfOne(cache, view.AnyAttribute, test.one) == viewOfOne(cache, view.AnyAttribute, test.other))
			require.NotSame(t, viewOfOne(cache, reading("rank"), test.one), viewOfOne(cache, view.AnyAttribute, test.one))
			one, other := newDevice("x", test.one), newDevice("y", test.other)
			require.Equal(t, test.same, view.LookAlike(&one, &other, reading("rank").Reader(driver)))
			require.Equal(t, equal, view.LookAlike(&one, &other, view.AnyAttribute.Reader(driver)))
			require.Equal(t, test.same, view.LookAlike(&other, &one, reading("rank").Reader(driver)))
		})
	}
}

// Nodes that differ only in attributes that are not read share one cached result. Each node gets its own devices.
func TestAnswersDoNotDependOnSerialNumbers(t *testing.T) {
	numbered := func(from int) []*sliceBuilder {
		return given(t, fmt.Sprintf("devices 6 mla-# index=# serial=number-%d#", from)).Slices
	}
	s := rowOfThree()
	cache := NewCache()
	s.Slices = numbered(0)
	_, known := s.asked(t, cache)
	require.False(t, known)
	s.Slices = numbered(6)
	s.Slices[0].Pool("pool-2", 1, 1)
	got, known := s.asked(t, cache)
	require.True(t, known)
	require.Equal(t, "pool-2", got.Results[0].Devices.Results[0].Pool)
	s.requireRight(t, got)

	// If a constraint reads the serial number, the nodes no longer share a result.
	s.Claims[0].Match(driver + "/serial")
	for from := range 2 {
		s.Slices = numbered(6 * from)
		got, known = s.asked(t, cache)
		require.False(t, known)
		s.requireRight(t, got)
	}
}

// The cache keeps the views of a node for a limited number of read sets, and computes other views again.
func TestViewsAreKeptForSomeReadSets(t *testing.T) {
	cache := NewCache()
	i, err := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", ring(2)...)}}}.with(WithCache(cache)).allocator(t).planner.InventoryOf(newNode(nodeName))
	require.NoError(t, err)
	readSets := []view.ReadSet{view.AnyAttribute}
	for n := range 2 * view.MaxReadSets {
		readSets = append(readSets, reading(fmt.Sprint("attribute-", n)))
	}
	all := map[view.ID]bool{}
	known := func() int { return reflect.ValueOf(i.Views.Load()).Len() }
	for range 2 {
		for n, f := range readSets {
			id := view.IDOf(i, f)
			all[id] = true
			before := known()
			require.Equal(t, min(max(n+1, len(all)), view.MaxReadSets), before)
			require.Equal(t, id, view.IDOf(i, f))
			require.Equal(t, before, known())
			require.Same(t, plan.ViewOf(cache, i, f), plan.ViewOf(cache, i, f))
		}
	}
	require.Len(t, all, len(readSets))
}
