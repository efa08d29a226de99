// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/view"
)

// reading is the read set with these attributes of the driver.
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
		return claim("c").want("x", 1).cel("e").define("e", expression)
	}
	odd := classOf("odd", serial+" == '1'", index+" % 2 == 1")
	for name, test := range map[string]struct {
		claims []*claimBuilder
		want   view.ReadSet
	}{
		"nothing":                {[]*claimBuilder{claim("c").want("x", 1)}, view.ReadSet{}},
		"selectors":              {[]*claimBuilder{claim("c").want("x", 1, index+" > 0", serial+" != ''")}, reading("index", "serial")},
		"class":                  {[]*claimBuilder{claim("c").want("x", 1).class("odd")}, reading("index", "serial")},
		"class and selector":     {[]*claimBuilder{claim("c").want("x", 1, "has(device.attributes['"+driver+"'].rank)").class("odd")}, reading("index", "rank", "serial")},
		"alternatives":           {[]*claimBuilder{claim("c").firstAvailable("x", sub("a", 1, index+" == 0"), sub("b", 2, serial+" == ''"))}, reading("index", "serial")},
		"attributes that match":  {[]*claimBuilder{claim("c").want("x", 2).match(driver + "/numa").distinct(driver + "/slot")}, reading("numa", "slot")},
		"constraint":             {[]*claimBuilder{cel(indices + ".sum() > 9")}, reading("index")},
		"several claims":         {[]*claimBuilder{cel("true"), claim("d").want("x", 1, serial+" == ''"), cel(indices + ".sum() > 9")}, reading("index", "serial")},
		"driver and capacity":    {[]*claimBuilder{claim("c").want("x", 1, "device.driver == 'x' || device.capacity['x'].memory.isGreaterThan(quantity('1'))")}, view.ReadSet{}},
		"all, by the selector":   {[]*claimBuilder{claim("c").want("x", 1, "device.attributes[device.driver].serial == ''")}, view.AnyAttribute},
		"all, by the constraint": {[]*claimBuilder{cel("devices.all(d, d.attributes[d.driver].serial == '')"), claim("d").want("x", 1, index+" > 0")}, view.AnyAttribute},
		"derived":                {[]*claimBuilder{claim("c").want("x", 1).derive(color, "'red'").match(color)}, view.AnyAttribute},
		"no such class":          {[]*claimBuilder{claim("c").want("x", 1).class("none")}, view.AnyAttribute},
		"no expression":          {[]*claimBuilder{claim("c").want("x", 1, "?")}, view.AnyAttribute},
		"no constraint":          {[]*claimBuilder{cel("?")}, view.AnyAttribute},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{claims: test.claims, classes: []*resourceapi.DeviceClass{odd}}
			a, claims := s.allocator(t), s.apiClaims()
			require.Equal(t, test.want, a.readSetOf(claims))
			require.Equal(t, test.want, a.readSetOf(claims), "remembered")
			require.Equal(t, view.ReadSet{}, a.readSetOf(nil), "not that of other claims")
		})
	}
	t.Run("unknown types", func(t *testing.T) {
		for _, edit := range []func(*resourceapi.DeviceClaim){
			func(c *resourceapi.DeviceClaim) { c.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{}} },
			func(c *resourceapi.DeviceClaim) { c.Constraints = []resourceapi.DeviceConstraint{{}} },
		} {
			c := claim("c").want("x", 1)
			edit(&c.Spec.Devices)
			s := scenario{claims: []*claimBuilder{c}}
			require.Equal(t, view.AnyAttribute, s.allocator(t).readSetOf(s.apiClaims()))
		}
	})
}

// Nodes share a view, and devices look alike to selectors, if they have the same in what is
// read. Of the rest it matters what makes upstream's selectors fail.
func TestHardwareIsWhatIsRead(t *testing.T) {
	version := func(text string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{VersionValue: &text}
	}
	versions := func(texts ...string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{VersionValues: texts}
	}
	viewOf := func(cache *Cache, read view.ReadSet, a attrs) *view.View {
		i, err := scenario{slices: []*sliceBuilder{slice("1", newDevice("x", a))}}.with(WithCache(cache)).allocator(t).inventoryOf(newNode(nodeName))
		require.NoError(t, err)
		return cache.viewOf(i, read)
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
			require.Equal(t, test.same, viewOf(cache, reading("rank"), test.one) == viewOf(cache, reading("rank"), test.other))
			equal := name == "equal"
			require.Equal(t, equal, viewOf(cache, view.AnyAttribute, test.one) == viewOf(cache, view.AnyAttribute, test.other))
			require.NotSame(t, viewOf(cache, reading("rank"), test.one), viewOf(cache, view.AnyAttribute, test.one))
			one, other := newDevice("x", test.one), newDevice("y", test.other)
			require.Equal(t, test.same, view.LookAlike(&one, &other, reading("rank").Reader(driver)))
			require.Equal(t, equal, view.LookAlike(&one, &other, view.AnyAttribute.Reader(driver)))
			require.Equal(t, test.same, view.LookAlike(&other, &one, reading("rank").Reader(driver)))
		})
	}
}

// Nodes that differ in what is not read have one answer, and each gets its own devices.
func TestAnswersDoNotDependOnSerialNumbers(t *testing.T) {
	numbered := func(from int) []*sliceBuilder {
		devices := ring(6)
		for i := range devices {
			devices[i].Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprint(from + i))}
		}
		return []*sliceBuilder{slice("1", devices...)}
	}
	s := rowOfThree()
	cache := NewCache()
	s.slices = numbered(0)
	_, known := s.asked(t, cache)
	require.False(t, known)
	s.slices = numbered(6)
	s.slices[0].pool("pool-2", 1, 1)
	got, known := s.asked(t, cache)
	require.True(t, known)
	require.Equal(t, "pool-2", got.Results[0].Devices.Results[0].Pool)
	s.requireRight(t, got)

	// One that is read makes it another question.
	s.claims[0].match(driver + "/serial")
	for from := range 2 {
		s.slices = numbered(6 * from)
		got, known = s.asked(t, cache)
		require.False(t, known)
		s.requireRight(t, got)
	}
}

// The views of a node are kept for some read sets, and found out again for others.
func TestViewsAreKeptForSomeReadSets(t *testing.T) {
	cache := NewCache()
	i, err := scenario{slices: []*sliceBuilder{slice("1", ring(2)...)}}.with(WithCache(cache)).allocator(t).inventoryOf(newNode(nodeName))
	require.NoError(t, err)
	known := i.Attached.(view.Latest)
	readSets := []view.ReadSet{view.AnyAttribute}
	for n := range 2 * view.MaxReadSets {
		readSets = append(readSets, reading(fmt.Sprint("attribute-", n)))
	}
	all := map[*view.View]bool{}
	for range 2 {
		for _, f := range readSets {
			all[cache.viewOf(i, f)] = true
			require.Same(t, cache.viewOf(i, f), known.Get(f))
			kept := slices.DeleteFunc(slices.Clone(readSets), func(f view.ReadSet) bool { return known.Get(f) == nil })
			require.LessOrEqual(t, len(kept), view.MaxReadSets)
		}
	}
	require.Len(t, all, len(readSets))
	require.Nil(t, known.Get(readSets[0]), "the oldest are forgotten")
}
