// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/internal/testing/cases"
)

// TestMistakes checks that an object with a mistake is rejected as a whole, with the field and the limit in the message.
func TestMistakes(t *testing.T) {
	spec := func(change func(*v1alpha1.DeviceAttributesSpec)) func(*v1alpha1.DeviceAttributesSpec) { return change }
	valid := values{"x": integer(1)}
	manyRows := func(s *v1alpha1.DeviceAttributesSpec) {
		for i := range 1025 {
			row(fmt.Sprint("chip-", i), valid)(s)
		}
	}
	manyAttributes := func(s *v1alpha1.DeviceAttributesSpec) {
		for i := range 17 {
			computed(fmt.Sprint("x", i), "1")(s)
		}
	}
	manyValues := values{}
	for i := range 17 {
		manyValues[fmt.Sprint("x", i)] = integer(1)
	}
	huge := strings.Repeat("ä", 1<<20)
	for name, test := range map[string]struct {
		change func(*v1alpha1.DeviceAttributesSpec)
		want   string
	}{
		"nothing":               {spec(func(*v1alpha1.DeviceAttributesSpec) {}), "spec has neither attributes nor table"},
		"no driver":             {spec(func(s *v1alpha1.DeviceAttributesSpec) { s.Driver = "" }), `spec.driver ""`},
		"huge driver":           {spec(func(s *v1alpha1.DeviceAttributesSpec) { s.Driver = huge }), "spec.driver"},
		"bad domain":            {inDomain("a_b"), `spec.domain "a_b" must be a DNS subdomain`},
		"huge domain":           {inDomain(huge), "must be a DNS subdomain"},
		"own domain":            {inDomain("Chip.example.com"), "is the name of the driver"},
		"domain of constraints": {inDomain("celset.dev"), `spec.domain "celset.dev" is reserved`},
		"domain in upper case":  {inDomain("CELSET.dev"), "is reserved"},
		"other domain in upper": {inDomain("X.example.com"), "must be a DNS subdomain in lower case"},
		"domain of Kubernetes":  {inDomain("resource.kubernetes.io"), "is reserved"},
		"bad selector": {spec(func(s *v1alpha1.DeviceAttributesSpec) {
			s.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
		}), "spec.nodeSelector: "},
		"large selector": {spec(func(s *v1alpha1.DeviceAttributesSpec) {
			s.NodeSelector = &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, 33)}
		}), "spec.nodeSelector has 33 labels and expressions, the limit is 32"},
		"long list in selector": {spec(func(s *v1alpha1.DeviceAttributesSpec) {
			s.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: make([]string, 65)}}}
		}), "spec.nodeSelector.matchExpressions[0] has 65 values, the limit is 64"},
		"many attributes":        {manyAttributes, "spec.attributes has 17 attributes, the limit is 16"},
		"bad name":               {computed("a-b", "1"), `spec.attributes[0].name "a-b" must be a C identifier of at most 32 bytes`},
		"long name":              {computed(strings.Repeat("a", 33), "1"), "must be a C identifier"},
		"huge name":              {computed(huge, "1"), "must be a C identifier"},
		"repeated name":          {spec(func(s *v1alpha1.DeviceAttributesSpec) { computed("x", "1")(s); computed("x", "2")(s) }), `spec.attributes[1].name "x" occurs twice`},
		"no expression":          {computed("x", ""), "spec.attributes[0].expression is missing"},
		"wrong expression":       {computed("x", "1 +"), "spec.attributes[0].expression of attribute x: ERROR: <input>:1:4: Syntax error"},
		"huge expression":        {computed("x", "'"+huge+"'"), "the limit is 10240"},
		"type":                   {computed("x", "1.5"), "must return an int, a bool, a string, a semver or a list of one of these types, but returns double"},
		"type of list":           {computed("x", "[[1]]"), "but returns list(list(int))"},
		"unknown variable":       {computed("x", "devices.size()"), "undeclared reference to 'devices'"},
		"impossible attribute":   {computed("x", "device.attributes['chip.example.com/index']"), "no device can have the domain"},
		"bad key":                {spec(func(s *v1alpha1.DeviceAttributesSpec) { row("chip-0", valid)(s); s.Table.Key = "uuid" }), `spec.table.key "uuid" must be "name" or the qualified name of an attribute`},
		"no rows":                {spec(func(s *v1alpha1.DeviceAttributesSpec) { s.Table = &v1alpha1.AttributeTable{Key: "name"} }), "spec.table.rows has 0 rows"},
		"many rows":              {manyRows, "spec.table.rows has 1025 rows, the limits are 1 and 1024"},
		"row without key":        {row("", valid), "spec.table.rows[0].key must have 1 to 64 bytes"},
		"row with huge key":      {row(huge, valid), "spec.table.rows[0].key must have 1 to 64 bytes"},
		"repeated row":           {spec(func(s *v1alpha1.DeviceAttributesSpec) { row("a", valid)(s); row("a", valid)(s) }), `spec.table.rows[1].key "a" occurs twice`},
		"row without values":     {row("a", nil), "spec.table.rows[0].values has 0 attributes"},
		"row with many values":   {row("a", manyValues), "spec.table.rows[0].values has 17 attributes"},
		"row with bad name":      {row("a", values{"a.b": integer(1)}), `spec.table.rows[0].values has the name "a.b" must be a C identifier`},
		"empty value":            {row("a", values{"x": {}}), "spec.table.rows[0].values[x] has 0 values"},
		"two values":             {row("a", values{"x": {IntValue: new(int64(1)), BoolValue: new(true)}}), "spec.table.rows[0].values[x] has 2 values"},
		"long text":              {row("a", values{"x": text(strings.Repeat("a", 65))}), "has a string of 65 bytes, the limit is 64"},
		"huge text":              {row("a", values{"x": text(huge)}), "the limit is 64"},
		"text that is not UTF-8": {row("a", values{"x": text("\xff")}), "not valid UTF-8"},
		"long text in a list":    {row("a", values{"x": {StringValues: []string{"a", strings.Repeat("a", 65)}}}), "has a string of 65 bytes"},
		"no version":             {row("a", values{"x": {VersionValue: new("v1")}}), `has the version "v1", which is no semantic version`},
		"no version in a list":   {row("a", values{"x": {VersionValues: []string{"1.0.0", "1"}}}), "which is no semantic version"},
		"empty list":             {row("a", values{"x": {IntValues: []int64{}}}), "has a list of 0 elements, the limits are 1 and 48"},
		"long list":              {row("a", values{"x": {BoolValues: make([]bool, 49)}}), "has a list of 49 elements"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object("one", test.change)
			if o.Spec.NodeSelector != nil {
				computed("x", "1")(&o.Spec)
			}
			added, report := enrich(t, nil, []*resourceapi.ResourceSlice{chips("node-a", 1)}, o, object("two", computed("y", "2")))
			require.Equal(t, attributes{"topology.celset.dev/y": integer(2)}, added["node-a/chip-0"])
			rejection := report.Objects[0].Rejection
			require.NotNil(t, rejection)
			require.Contains(t, rejection.Message, test.want)
			require.LessOrEqual(t, len(rejection.Message), 1024)
			require.Zero(t, report.Objects[0].Devices)
			require.Zero(t, report.Objects[0].UnmatchedRows.Count)
			again, err := newEnricher(t).Check(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, rejection, again)
		})
	}
	correct, err := newEnricher(t).Check(t.Context(), object("one", computed("x", "1")))
	require.NoError(t, err)
	require.Nil(t, correct)
}

// TestLargestObject checks an object at all limits.
func TestLargestObject(t *testing.T) {
	o := object("one")
	for i := range v1alpha1.MaxAttributeRows {
		row(fmt.Sprint("chip-", i), values{"x": text(strings.Repeat("a", 64)), "y": {StringValues: []string{"a"}}})(&o.Spec)
	}
	for i := range v1alpha1.MaxComputedAttributes {
		computed(fmt.Sprintf("x%031d", i), "true")(&o.Spec)
	}
	added, report := enrich(t, nil, []*resourceapi.ResourceSlice{chips("node-a", 128)}, o)
	require.Nil(t, report.Objects[0].Rejection)
	require.Len(t, added, 128)
	require.Equal(t, 128*18, report.Objects[0].Attributes)
	require.Equal(t, 1024-128, report.Objects[0].UnmatchedRows.Count)
	require.Len(t, report.Objects[0].UnmatchedRows.First, 10)
}

// TestManyObjects checks that the oldest objects are in effect, in any order of the list.
func TestManyObjects(t *testing.T) {
	var objects []*v1alpha1.DeviceAttributes
	for i := range 65 {
		o := object(fmt.Sprintf("object-%02d", i), computed(fmt.Sprint("x", i%20), "1"))
		o.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000-i), 0))
		objects = append([]*v1alpha1.DeviceAttributes{o}, objects...)
	}
	objects = append(objects, objects[3])
	slices := []*resourceapi.ResourceSlice{chips("node-a", 1)}
	_, report := enrich(t, nil, slices, objects...)
	require.Len(t, report.Objects, 65)
	for i, of := range report.Objects {
		if i == 0 {
			require.Equal(t, wellknown.ReasonTooManyObjects, of.Rejection.Reason)
			require.Contains(t, of.Rejection.Message, "64 older DeviceAttributes objects are in effect, which is the limit")
			continue
		}
		require.Nil(t, of.Rejection, i)
		require.Equal(t, 1, of.Attributes)
	}
	e := newEnricher(t, objects...)
	require.NoError(t, e.Set(t.Context(), objects[1:]))
	_, report, err := e.Enrich(t.Context(), slices, nil)
	require.NoError(t, err)
	require.Nil(t, report.Objects[0].Rejection, "there is room again")
}

// TestCostOfObject checks that the expressions of an object share a budget for each device. Otherwise an object could keep the
// slices of its driver incomplete for minutes.
func TestCostOfObject(t *testing.T) {
	const dear = "lists.range(500).map(i, i).size()"
	o := object("one", computed("a", "1"))
	for i := range 14 {
		computed(fmt.Sprint("b", i), dear)(&o.Spec)
	}
	computed("c", "1")(&o.Spec)
	observer := &counter{}
	e, err := deviceattributes.NewEnricher(deviceattributes.Config{Observer: observer})
	require.NoError(t, err)
	other := object("two", computed("d", "1"))
	require.NoError(t, e.Set(t.Context(), []*v1alpha1.DeviceAttributes{o, other}))
	enriched, report, err := e.Enrich(t.Context(), []*resourceapi.ResourceSlice{chips("node-a", 2)}, nil)
	require.NoError(t, err)
	for _, d := range enriched[0].Spec.Devices {
		require.Contains(t, d.Attributes, resourceapi.QualifiedName("topology.celset.dev/a"))
		require.NotContains(t, d.Attributes, resourceapi.QualifiedName("topology.celset.dev/c"))
		require.Contains(t, d.Attributes, resourceapi.QualifiedName("topology.celset.dev/d"), "another object has a budget of its own")
	}
	failed := report.Objects[0].FailedExpressions
	require.GreaterOrEqual(t, failed.Count, 2)
	require.Equal(t, "the evaluations together exceed the cost budget of 10000: write cheaper expressions, or distribute them over several objects", failed.First[0].Message)
	require.Zero(t, report.Objects[1].FailedExpressions.Count)
	require.LessOrEqual(t, observer.cost, 2*2*deviceattributes.CostLimit)
}

// counter adds up the costs of evaluations.
type counter struct{ cost uint64 }

func (c *counter) ObserveCompilation(string, bool, error) {}

func (c *counter) ObserveEvaluation(_ string, cost uint64, _ error) { c.cost += cost }

// TestLimitsOfDevices checks devices that would exceed Kubernetes' limits: 32 attributes and capacities, 48 values.
func TestLimitsOfDevices(t *testing.T) {
	for name, test := range map[string]struct {
		published func(*resourceapi.Device)
		fits      bool
	}{
		"31 attributes": {func(d *resourceapi.Device) {
			for i := range 29 {
				d.Attributes[resourceapi.QualifiedName(fmt.Sprint("a", i))] = integer(1)
			}
		}, true},
		"32 attributes": {func(d *resourceapi.Device) {
			for i := range 30 {
				d.Attributes[resourceapi.QualifiedName(fmt.Sprint("a", i))] = integer(1)
			}
		}, false},
		"30 capacities": {func(d *resourceapi.Device) {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
			for i := range 30 {
				d.Capacity[resourceapi.QualifiedName(fmt.Sprint("c", i))] = resourceapi.DeviceCapacity{}
			}
		}, false},
		"47 values": {func(d *resourceapi.Device) {
			d.Attributes["list"] = resourceapi.DeviceAttribute{IntValues: make([]int64, 45)}
		}, true},
		"48 values": {func(d *resourceapi.Device) {
			d.Attributes["list"] = resourceapi.DeviceAttribute{IntValues: make([]int64, 46)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			slice := chips("node-a", 2)
			test.published(&slice.Spec.Devices[0])
			added, report := enrich(t, nil, []*resourceapi.ResourceSlice{slice}, object("one", computed("x", "1")))
			_, fits := added["node-a/chip-0"]
			require.Equal(t, test.fits, fits)
			require.Contains(t, added, "node-a/chip-1")
			if test.fits {
				require.Zero(t, report.Objects[0].OverLimit.Count)
				return
			}
			require.Equal(t, []string{"chip.example.com/node-a/chip-0"}, report.Objects[0].OverLimit.First)
			require.Equal(t, 1, report.Objects[0].Attributes)
			status := report.Objects[0].Status(metav1.Now())
			require.Equal(t, "Complete False LimitExceeded: 1 devices would exceed Kubernetes' limits for attributes and got none, "+
				"the first is chip.example.com/node-a/chip-0: define fewer attributes, or shorter lists.", conditions(status)[1])
		})
	}
}

// TestNoObjectPanics enriches malformed slices by malformed objects.
func TestNoObjectPanics(t *testing.T) {
	words := []string{
		"", "name", "x", "chip.example.com", "chip.example.com/x", "chip.example.com/", "/", "/x", "celset.dev", "\xff", "\x00", "ä", "chip-0", "1.0.0",
		strings.Repeat("x", 70), "device.name", "node.labels", "device.attributes['chip.example.com'].x", "[dyn(1), 'a']", "[?dyn(1)]", "optional.of(device.name)",
		"optional.of(optional.none())", "device", "node", "[device]", "{1: 2}", "timestamp('2026-01-01T00:00:00Z')", "b'a'", "1u", "type(1)", "quantity('1')", "1/0", "device == device", "type(device) == type(node)",
	}
	word := rapid.SampledFrom(words)
	value := rapid.Custom(func(t *rapid.T) (a resourceapi.DeviceAttribute) {
		for _, set := range []func(){
			func() { a.IntValue = new(int64(1)) }, func() { a.StringValue = new(word.Draw(t, "text")) }, func() { a.VersionValue = new(word.Draw(t, "version")) },
			func() { a.StringValues = []string{word.Draw(t, "first"), "x"} }, func() { a.VersionValues = []string{} }, func() { a.BoolValues = []bool{true} },
		} {
			if rapid.IntRange(0, 3).Draw(t, "set") == 0 {
				set()
			}
		}
		return a
	})
	selector := rapid.Custom(func(t *rapid.T) *metav1.LabelSelector {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		return &metav1.LabelSelector{
			MatchLabels:      rapid.MapOfN(word, word, 0, 2).Draw(t, "labels"),
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: word.Draw(t, "key"), Operator: metav1.LabelSelectorOperator(word.Draw(t, "operator")), Values: []string{"x"}}}[:rapid.IntRange(0, 1).Draw(t, "expressions")],
		}
	})
	e := newEnricher(t)
	accepted := 0
	cases.CheckN(t, cases.Of(2000, 20_000), func(t *rapid.T) {
		var objects []*v1alpha1.DeviceAttributes
		for range rapid.IntRange(1, 3).Draw(t, "objects") {
			o := object(word.Draw(t, "name"), inDomain(rapid.SampledFrom([]string{"", "topology.example.com", word.Draw(t, "domain")}).Draw(t, "some")))
			o.Spec.NodeSelector = selector.Draw(t, "selector")
			for range rapid.IntRange(0, 2).Draw(t, "attributes") {
				computed(rapid.SampledFrom([]string{"x", "y", word.Draw(t, "attribute")}).Draw(t, "some"), word.Draw(t, "expression"))(&o.Spec)
			}
			for range rapid.IntRange(0, 2).Draw(t, "rows") {
				row(word.Draw(t, "key"), rapid.MapOfN(word, value, 0, 2).Draw(t, "values"))(&o.Spec)
				o.Spec.Table.Key = word.Draw(t, "key")
			}
			objects = append(objects, o)
		}
		slice := chips("node-a", 2)
		slice.Spec.NodeName = rapid.SampledFrom([]*string{nil, new(""), slice.Spec.NodeName}).Draw(t, "node")
		slice.Spec.PerDeviceNodeSelection = rapid.SampledFrom([]*bool{nil, new(true)}).Draw(t, "perDevice")
		slice.Spec.Devices[0].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			resourceapi.QualifiedName(word.Draw(t, "published")): value.Draw(t, "value"), "x": value.Draw(t, "x"),
		}
		before := slice.DeepCopy()
		require.NoError(t, e.Set(t.Context(), objects))
		enriched, report, err := e.Enrich(t.Context(), []*resourceapi.ResourceSlice{slice}, func(string) (map[string]string, bool) { return map[string]string{"x": "x"}, true })
		require.NoError(t, err)
		require.Equal(t, before, slice)
		for _, d := range enriched[0].Spec.Devices {
			requireNoInvention(t, before, d)
		}
		for _, of := range report.Objects {
			if of.Rejection == nil {
				accepted++
			}
			_, err := json.Marshal(of.Status(metav1.Now()))
			require.NoError(t, err)
		}
	})
	require.Positive(t, accepted)
}

// requireNoInvention checks that a device has its published attributes, and other ones only in domains that no driver uses.
func requireNoInvention(t require.TestingT, published *resourceapi.ResourceSlice, d resourceapi.Device) {
	for _, of := range published.Spec.Devices {
		if of.Name != d.Name {
			continue
		}
		for name, value := range of.Attributes {
			require.Equal(t, value, d.Attributes[name])
		}
		for name := range d.Attributes {
			if _, isPublished := of.Attributes[name]; !isPublished {
				require.Regexp(t, `^[a-z0-9][a-z0-9.-]*/[A-Za-z_][A-Za-z0-9_]*$`, name)
				require.NotRegexp(t, `^(celset\.dev|chip\.example\.com)/`, name)
			}
		}
	}
}

// TestReportIsOfOneRun checks that a report stays valid after later calls.
func TestReportIsOfOneRun(t *testing.T) {
	e := newEnricher(t, object("one", computed("x", "1")))
	a := chips("node-a", 1)
	_, report, err := e.Enrich(t.Context(), []*resourceapi.ResourceSlice{a}, nil)
	require.NoError(t, err)
	require.NoError(t, e.Set(t.Context(), nil))
	_, _, err = e.Enrich(t.Context(), nil, nil)
	require.NoError(t, err)
	origin, ok := report.Origin(driver, "node-a", "chip-0", "topology.celset.dev/x")
	require.True(t, ok)
	require.Equal(t, "one", origin)
	require.Equal(t, deviceattributes.Examples[string]{}, report.Objects[0].OverLimit)
}
