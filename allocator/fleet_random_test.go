// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// randomlyRead lists the attributes that random expressions read. [describe] sets them on devices.
var randomlyRead = randomexpr.Attributes{
	Domain: driver, Ints: []string{"weight", "rank"}, String: "letter",
	Strings: "letters", Version: "firmware", Bool: "healthy", Capacity: "size", Drivers: []string{driver, otherDriver},
}

const otherDriver = "nic.example.com"

// describe sets the attributes that random expressions read. Sometimes an attribute is missing or has another type. Some
// devices get no capacities, because the search handles devices with and without capacities differently.
func describe(t *rapid.T, d *resourceapi.Device, capacity bool) {
	letter := rapid.SampledFrom([]string{"a", "b", "c"})
	set := func(name string, value any) {
		d.Attributes[resourceapi.QualifiedName(driver+"/"+name)] = newDevice("", attrs{"x": value}).Attributes["x"]
	}
	set("rank", rapid.IntRange(0, 4).Draw(t, "rank"))
	set("letter", letter.Draw(t, "letter"))
	switch rapid.IntRange(0, 15).Draw(t, "weight") {
	case 0: // no weight
	case 1:
		set("weight", "heavy")
	default:
		set("weight", rapid.IntRange(0, 2).Draw(t, "weight"))
	}
	set("letters", rapid.SampledFrom([]any{
		[]string{"a"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c", "a"}, "b",
	}).Draw(t, "letters"))
	set("firmware", resourceapi.DeviceAttribute{VersionValue: ptr.To(rapid.SampledFrom([]string{"1.0.0", "1.1.0", "1.2.0"}).Draw(t, "firmware"))})
	set("healthy", rapid.Bool().Draw(t, "healthy"))
	if !capacity {
		return
	}
	if d.Capacity == nil {
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
	}
	d.Capacity[driver+"/size"] = resourceapi.DeviceCapacity{
		Value: *resource.NewQuantity(rapid.Int64Range(1, 4).Draw(t, "size")<<30, resource.BinarySI),
	}
}

// randomFleet draws a fleet whose claims have random expressions.
func randomFleet(t *rapid.T) *fleet {
	f := newFleet(rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "cycles"))
	f.listAttributes = oneIn(t, 4, "list attributes")
	f.classes[driver] = classOf(driver)
	expressions := make([]string, rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "expressions"))
	for i := range expressions {
		expressions[i] = randomexpr.Condition(t, randomlyRead)
	}
	kind := rapid.SampledFrom([]string{"plain", "plain", "plain", "anything", "twins"}).Draw(t, "kind")
	if kind == "twins" {
		expressions = []string{rapid.SampledFrom(twinExpressions).Draw(t, "expression")}
		addTwins(t, f)
	} else {
		addRandomNodes(t, f, kind == "plain")
	}
	var pod []*claimBuilder
	for i := range rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "pods") {
		if i > 0 && oneIn(t, 3, "like another pod") {
			pod = alteredPod(t, pod)
		} else {
			pod = randomPod(t, kind != "anything", expressions)
		}
		f.addPod(pod...)
	}
	return f
}

// twinExpressions holds expressions that read the properties of devices that [alter] changes.
var twinExpressions = []string{
	"devices.map(d, d.capacity['mla.example.com'].size.asInteger() / 1073741824).sum() % 3 == 0",
	"devices.all(d, devices.exists(o, d != o && d.capacity['mla.example.com'].size == o.capacity['mla.example.com'].size))",
	"devices.filter(d, d.allowMultipleAllocations).size() % 2 == 0",
	"devices.map(d, d.driver).distinct().size() != 2",
	"devices.exists_one(d, d.driver == 'nic.example.com')",
	"devices.all(d, has(d.attributes['mla.example.com'].rank))",
	"devices.map(d, d.attributes['mla.example.com'].rank).sum() % 2 == 0",
}

// addTwins adds a node and copies of it. Each copy differs from the original in at most one property.
func addTwins(t *rapid.T, f *fleet) {
	original := plainNode(t)
	f.addScenario(original)
	for range rapid.IntRange(1, 5).Draw(t, "twins") {
		s := original.copyOf()
		alter(t, s)
		f.addScenario(s)
	}
}

// addRandomNodes adds nodes. Some nodes are equal to earlier nodes, or almost equal.
func addRandomNodes(t *rapid.T, f *fleet, plain bool) {
	var known []scenario
	for range rapid.SampledFrom([]int{1, 2, 3, 4, 6, 8}).Draw(t, "nodes") {
		var s scenario
		switch {
		case len(known) > 0 && oneIn(t, 3, "like another"):
			s = rapid.SampledFrom(known).Draw(t, "original").copyOf()
			if oneIn(t, 2, "almost") {
				alter(t, s)
			}
		case plain:
			s = plainNode(t)
		default:
			s = scenario{fixture.RandomNode(t)}
			for i := range s.Slices[0].Spec.Devices {
				describe(t, &s.Slices[0].Spec.Devices[i], true)
			}
		}
		known = append(known, s)
		name := f.addScenario(s)
		for cycle := range f.cycles {
			if cycle > 0 && oneIn(t, 4, "replaced") {
				s = s.copyOf()
				alter(t, s)
				f.replace(cycle, name, s.Slices...)
			}
			takeSome(t, f, cycle, name, s.Slices[0].Spec)
		}
	}
	if oneIn(t, 8, "shared pool") {
		device := newDevice("shared", attrs{"index": 9})
		describe(t, &device, true)
		f.addShared(slice("shared", device))
	}
}

// alter changes one property of a device or a slice.
func alter(t *rapid.T, s scenario) {
	devices := s.Slices[0].Spec.Devices
	d := &devices[rapid.IntRange(0, len(devices)-1).Draw(t, "altered")]
	if last := len(s.Slices) - 1; len(s.Slices[last].Spec.Devices) > 0 && oneIn(t, 6, "driver") {
		s.Slices[last].Driver("other.example.com")
		return
	}
	switch rapid.IntRange(0, 9).Draw(t, "alteration") {
	case 0:
		d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: "new", Effect: resourceapi.DeviceTaintEffectNoSchedule})
	case 1:
		d.Name += "-new"
	case 2:
		shared(d)
	case 3:
		d.Attributes["color"] = resourceapi.DeviceAttribute{StringValue: ptr.To("green")}
	case 4, 5:
		if capacity, found := d.Capacity[driver+"/size"]; found {
			capacity.Value.Add(resource.MustParse("1Gi"))
			d.Capacity[driver+"/size"] = capacity
			break
		}
		delete(d.Attributes, driver+"/rank")
	case 6:
		delete(d.Attributes, rapid.SampledFrom(slices.Sorted(maps.Keys(d.Attributes))).Draw(t, "attribute"))
	case 7:
		describe(t, d, len(d.Capacity) > 0)
	case 8, 9:
		id := rapid.SampledFrom(slices.Sorted(maps.Keys(d.Attributes))).Draw(t, "attribute")
		d.Attributes[id] = otherValue(d.Attributes[id])
	}
}

// otherValue returns an attribute with a different value of the same type.
func otherValue(a resourceapi.DeviceAttribute) resourceapi.DeviceAttribute {
	switch {
	case a.IntValue != nil:
		a.IntValue = ptr.To(*a.IntValue + 1)
	case a.BoolValue != nil:
		a.BoolValue = ptr.To(!*a.BoolValue)
	case a.StringValue != nil:
		a.StringValue = ptr.To(*a.StringValue + "b")
	case a.StringValues != nil:
		a.StringValues = append(slices.Clone(a.StringValues), "d")
	case a.VersionValue != nil:
		a.VersionValue = ptr.To(*a.VersionValue + ".0") // no valid version
	}
	return a
}

// takeSome marks random unshared devices of a node as allocated in the cycle. It leaves half of the nodes idle.
func takeSome(t *rapid.T, f *fleet, cycle int, node string, of resourceapi.ResourceSliceSpec) {
	if oneIn(t, 2, "all free") {
		return
	}
	for _, d := range of.Devices {
		if d.AllowMultipleAllocations == nil && oneIn(t, 5, "in use") {
			f.take(cycle, of.Driver, node, d.Name)
		}
	}
}

// plainNode draws a node with one or two slices. The devices have attributes, sometimes capacities, and rarely allow sharing.
func plainNode(t *rapid.T) scenario {
	devices := make([]resourceapi.Device, rapid.SampledFrom([]int{4, 6, 7, 7, 8, 8}).Draw(t, "devices"))
	capacity := oneIn(t, 2, "capacity")
	first := rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "first index")
	for i := range devices {
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"index": first + i})
		describe(t, &devices[i], capacity)
	}
	if oneIn(t, 6, "shared devices") {
		for range 2 {
			shared(&devices[rapid.IntRange(0, len(devices)-1).Draw(t, "shared")])
		}
	}
	s := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", devices...)}}}
	if oneIn(t, 4, "two drivers") {
		half := len(devices) / 2
		s.Slices = []*sliceBuilder{slice("1", devices[:half]...), slice("2", devices[half:]...).Driver(otherDriver)}
	}
	return s
}
