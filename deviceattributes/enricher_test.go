// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/deviceattributes"
)

// TestExpressions checks the values of computed attributes on chip-1 of node-a. A nil want means that the device does not get the
// attribute.
func TestExpressions(t *testing.T) {
	nodes := labelsOf{"node-a": {"example.com/rack": "r7"}}
	for expression, test := range map[string]struct {
		want *resourceapi.DeviceAttribute
		// failure is a part of the message of a failed evaluation.
		failure string
	}{
		"device.attributes['chip.example.com'].index % 4":                {want: &resourceapi.DeviceAttribute{IntValue: new(int64(1))}},
		"int(device.name.substring(5)) + 10":                             {want: &resourceapi.DeviceAttribute{IntValue: new(int64(11))}},
		"device.driver + '!'":                                            {want: &resourceapi.DeviceAttribute{StringValue: new("chip.example.com!")}},
		"node.labels['example.com/rack']":                                {want: &resourceapi.DeviceAttribute{StringValue: new("r7")}},
		"node.name":                                                      {want: &resourceapi.DeviceAttribute{StringValue: new("node-a")}},
		"device.attributes['chip.example.com'].bus == 'bus-1'":           {want: &resourceapi.DeviceAttribute{BoolValue: new(true)}},
		"semver('1.2.3')":                                                {want: &resourceapi.DeviceAttribute{VersionValue: new("1.2.3")}},
		"[1, 2].map(i, device.attributes['chip.example.com'].index + i)": {want: &resourceapi.DeviceAttribute{IntValues: []int64{2, 3}}},
		"['a', 'b']":        {want: &resourceapi.DeviceAttribute{StringValues: []string{"a", "b"}}},
		"[true, false]":     {want: &resourceapi.DeviceAttribute{BoolValues: []bool{true, false}}},
		"[semver('1.0.0')]": {want: &resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0"}}},
		"math.greatest(device.attributes['chip.example.com'].index, 3)":   {want: &resourceapi.DeviceAttribute{IntValue: new(int64(3))}},
		"device.?attributes['chip.example.com'].?index":                   {want: &resourceapi.DeviceAttribute{IntValue: new(int64(1))}},
		"device.attributes['chip.example.com'].?missing":                  {},
		"node.labels[?'example.com/row']":                                 {},
		"has(device.name) && has(node.labels) && !has(device.capacity.x)": {want: &resourceapi.DeviceAttribute{BoolValue: new(false)}},
		"device.attributes['chip.example.com'].missing":                   {failure: "no such key: missing"},
		"node.labels['example.com/row']":                                  {failure: "no such key: example.com/row"},
		"[1, 2, 3].filter(i, i > 3)":                                      {failure: "returned an empty list"},
		"[dyn(1), dyn('a')]":                                              {failure: "a list of other or of different types"},
		"dyn(1.5)":                                                        {failure: "returned double"},
		"dyn(null)":                                                       {failure: "returned null_type"},
		"dyn({'a': 1})":                                                   {failure: "returned map"},
		"[[dyn(1)]].map(l, dyn(l))":                                       {failure: "a list of other or of different types"},
		"'0123456789'.replace('', '0123456789')":                          {failure: "the result has a string of 120 bytes, the limit is 64"},
		"lists.range(49)":                                                 {failure: "a list of 49 elements, the limits are 1 and 48"},
		"1 / (device.attributes['chip.example.com'].index - 1)":           {failure: "division by zero"},
		"lists.range(1000).map(i, lists.range(1000)).size()":              {failure: "exceeds the cost limit of 10000"},
	} {
		t.Run(expression, func(t *testing.T) {
			added, report := enrich(t, nodes, []*resourceapi.ResourceSlice{chips("node-a", 2)}, object("one", computed("x", expression)))
			of := report.Objects[0]
			require.Nil(t, of.Rejection)
			require.Equal(t, 2, of.Devices)
			got, ok := added["node-a/chip-1"]["topology.celset.dev/x"]
			require.Equal(t, test.want != nil, ok)
			if test.want != nil {
				require.Equal(t, *test.want, got)
			}
			if test.failure == "" {
				require.Zero(t, of.FailedExpressions)
				return
			}
			failures := of.FailedExpressions
			last := failures.First[len(failures.First)-1]
			require.Equal(t, "chip.example.com/node-a/chip-1", last.Device)
			require.Equal(t, "x", last.Attribute)
			require.Contains(t, last.Message, test.failure)
			require.NotContains(t, last.Message, "\n")
		})
	}
}

func TestTable(t *testing.T) {
	version, isTrue := "1.2.3", true
	slice := chips("node-a", 4)
	slice.Spec.Devices[3].Attributes = attributes{"serial": integer(-7), "version": {VersionValue: &version}, "good": {BoolValue: &isTrue}, "list": {IntValues: []int64{7}}}
	for key, test := range map[string]struct {
		rows []string
		want map[string]string // the key of the row of each device
		// without is the number of devices without a row, unmatched are the rows without device.
		without   int
		unmatched []string
	}{
		"name":                     {[]string{"chip-1", "chip-9"}, map[string]string{"chip-1": "chip-1"}, 3, []string{"chip-9"}},
		"chip.example.com/bus":     {[]string{"bus-0", "bus-2"}, map[string]string{"chip-0": "bus-0", "chip-2": "bus-2"}, 2, nil},
		"chip.example.com/index":   {[]string{"2"}, map[string]string{"chip-2": "2"}, 3, nil},
		"chip.example.com/serial":  {[]string{"-7", "07"}, map[string]string{"chip-3": "-7"}, 3, []string{"07"}},
		"chip.example.com/version": {[]string{"1.2.3"}, map[string]string{"chip-3": "1.2.3"}, 3, nil},
		"chip.example.com/good":    {[]string{"true", "false"}, map[string]string{"chip-3": "true"}, 3, []string{"false"}},
		"chip.example.com/list":    {[]string{"7"}, nil, 4, []string{"7"}},
		"other.example.com/bus":    {[]string{"bus-0"}, nil, 4, []string{"bus-0"}},
	} {
		t.Run(key, func(t *testing.T) {
			o := object("one")
			for _, r := range test.rows {
				row(r, values{"row": text(r)})(&o.Spec)
			}
			o.Spec.Table.Key = key
			added, report := enrich(t, nil, []*resourceapi.ResourceSlice{slice}, o)
			require.Nil(t, report.Objects[0].Rejection)
			got := map[string]string{}
			for device, of := range added {
				got[device[len("node-a/"):]] = *of["topology.celset.dev/row"].StringValue
			}
			require.Equal(t, len(test.want), len(got))
			for device, want := range test.want {
				require.Equal(t, want, got[device])
			}
			require.Equal(t, 4, report.Objects[0].Devices)
			require.Equal(t, len(test.want), report.Objects[0].Attributes)
			require.Equal(t, test.without, report.Objects[0].DevicesWithoutRow.Count)
			require.Equal(t, test.unmatched, report.Objects[0].UnmatchedRows.First)
		})
	}
}

func TestNodeSelector(t *testing.T) {
	rack := map[string]string{"rack": "r1"}
	nodes := labelsOf{"node-a": rack, "node-b": {"rack": "r2"}}
	network := chips("network", 1)
	network.Spec.NodeName, network.Spec.AllNodes = nil, new(true)
	perDevice := chips("shared", 3)
	perDevice.Spec.NodeName, perDevice.Spec.PerDeviceNodeSelection = nil, new(true)
	perDevice.Spec.Devices[0].NodeName = new("node-a")
	perDevice.Spec.Devices[1].NodeName = new("node-b")
	perDevice.Spec.Devices[2].AllNodes = new(true)
	all := []*resourceapi.ResourceSlice{chips("node-a", 1), chips("node-b", 1), chips("unknown", 1), network, perDevice}

	added, report := enrich(t, nodes, all, object("some", onNodes(rack), computed("x", "1")))
	require.Len(t, added, 2)
	require.Contains(t, added, "node-a/chip-0")
	require.Contains(t, added, "shared/chip-0")
	require.Equal(t, 2, report.Objects[0].Devices)

	added, report = enrich(t, nodes, all, object("all", computed("x", "1"), computed("rack", "node.labels['rack']")))
	require.Equal(t, 7, report.Objects[0].Devices)
	require.Equal(t, 7+4, report.Objects[0].Attributes)
	require.Equal(t, 3, report.Objects[0].FailedExpressions.Count, "the labels of an unknown node, and of none")
	require.Equal(t, text("r2"), added["shared/chip-1"]["topology.celset.dev/rack"])

	_, report = enrich(t, nodes, all, object("other", func(s *v1alpha1.DeviceAttributesSpec) { s.Driver = "other.example.com" }, computed("x", "1")))
	require.Zero(t, report.Objects[0].Devices)
}

func TestConflicts(t *testing.T) {
	slices := []*resourceapi.ResourceSlice{chips("node-a", 3)}
	added, report := enrich(t, nil, slices,
		object("b", computed("x", "device.attributes['chip.example.com'].index"), computed("only", "true")),
		object("a", row("chip-0", values{"x": integer(0)}), row("chip-1", values{"x": integer(5)}), row("chip-2", values{"x": text("2")})),
		object("c", row("chip-2", values{"y": integer(1)}), computed("y", "device.attributes['chip.example.com'].index")))
	require.Equal(t, attributes{"topology.celset.dev/x": integer(0), "topology.celset.dev/only": {BoolValue: new(true)}, "topology.celset.dev/y": integer(0)}, added["node-a/chip-0"])
	require.NotContains(t, added["node-a/chip-1"], resourceapi.QualifiedName("topology.celset.dev/x"))
	require.NotContains(t, added["node-a/chip-2"], resourceapi.QualifiedName("topology.celset.dev/x"))
	require.NotContains(t, added["node-a/chip-2"], resourceapi.QualifiedName("topology.celset.dev/y"))

	a, _ := report.Object("a")
	require.Equal(t, []deviceattributes.Conflict{
		{Attribute: "topology.celset.dev/x", Device: "chip.example.com/node-a/chip-1", Object: "b"},
		{Attribute: "topology.celset.dev/x", Device: "chip.example.com/node-a/chip-2", Object: "b"},
	}, a.Conflicts.First)
	require.Equal(t, 1, a.Attributes)
	b, _ := report.Object("b")
	require.Equal(t, 2, b.Conflicts.Count)
	require.Equal(t, "a", b.Conflicts.First[0].Object)
	c, _ := report.Object("c")
	require.Equal(t, []deviceattributes.Conflict{{Attribute: "topology.celset.dev/y", Device: "chip.example.com/node-a/chip-2", Object: "c"}}, c.Conflicts.First)
	_, ok := report.Object("d")
	require.False(t, ok)

	origin, ok := report.Origin(driver, "node-a", "chip-0", "topology.celset.dev/x")
	require.True(t, ok)
	require.Equal(t, "a", origin, "the first of two objects that agree")
	for _, name := range []resourceapi.QualifiedName{"index", "topology.celset.dev/missing"} {
		_, ok = report.Origin(driver, "node-a", "chip-0", name)
		require.False(t, ok)
	}
	_, ok = report.Origin(driver, "node-a", "chip-1", "topology.celset.dev/x")
	require.False(t, ok)
	_, ok = report.Origin(driver, "node-b", "chip-0", "topology.celset.dev/x")
	require.False(t, ok)
}

// TestDomainsOfDrivers checks that an object has no effect in a domain that any driver uses.
func TestDomainsOfDrivers(t *testing.T) {
	other := chips("node-b", 1)
	other.Spec.Driver = "nic.example.com"
	other.Spec.Devices[0].Attributes = attributes{"Fabric.example.com/rail": integer(1)}
	for domain, used := range map[string]bool{"nic.example.com": true, "fabric.example.com": true, "example.com": false, "sub.nic.example.com": false} {
		t.Run(domain, func(t *testing.T) {
			slices := []*resourceapi.ResourceSlice{chips("node-a", 1), other}
			added, report := enrich(t, nil, slices, object("one", inDomain(domain), computed("x", "1")), object("two", computed("x", "1")))
			require.Contains(t, added["node-a/chip-0"], resourceapi.QualifiedName("topology.celset.dev/x"))
			_, has := added["node-a/chip-0"][resourceapi.QualifiedName(domain+"/x")]
			require.Equal(t, !used, has)
			require.Equal(t, used, report.Objects[0].Rejection != nil)
			if used {
				require.Equal(t, wellknown.ReasonDomainInUse, report.Objects[0].Rejection.Reason)
				require.Contains(t, report.Objects[0].Rejection.Message, `spec.domain "`+domain+`": driver nic.example.com publishes in this domain`)
			}
		})
	}
}

// TestKept checks that a slice is enriched once while nothing that matters changes.
func TestKept(t *testing.T) {
	a, b, other := chips("node-a", 2), chips("node-b", 2), chips("node-c", 1)
	other.Spec.Driver = "other.example.com"
	all := []*resourceapi.ResourceSlice{a, b, other}
	nodes := labelsOf{"node-a": {"rack": "r1", "other": "1"}, "node-b": {"rack": "r2"}}
	first, second := object("first", computed("rack", "node.labels['rack']")), object("second", onNodes(map[string]string{"rack": "r2"}), computed("x", "1"))
	e := newEnricher(t, first, second)
	run := func() []*resourceapi.ResourceSlice {
		enriched, _, err := e.Enrich(t.Context(), all, nodes.get)
		require.NoError(t, err)
		return enriched
	}
	before := run()
	require.NotSame(t, a, before[0])
	require.Same(t, other, before[2])
	requireSame := func(sameA, sameB bool) {
		t.Helper()
		after := run()
		require.Equal(t, sameA, before[0] == after[0], "node-a")
		require.Equal(t, sameB, before[1] == after[1], "node-b")
		before = after
	}
	requireSame(true, true)
	nodes["node-a"] = map[string]string{"rack": "r1", "other": "2"}
	requireSame(true, true)
	nodes["node-a"] = map[string]string{"rack": "r3", "other": "2"}
	requireSame(false, true)
	second = second.DeepCopy()
	second.Spec.Attributes[0].Expression, second.Generation = "2", 2
	require.NoError(t, e.Set(t.Context(), []*v1alpha1.DeviceAttributes{first, second}))
	requireSame(true, false)
	second = second.DeepCopy()
	second.Status.Devices, second.ResourceVersion = 2, "7"
	require.NoError(t, e.Set(t.Context(), []*v1alpha1.DeviceAttributes{second, first}))
	requireSame(true, true)
	nodes["node-a"] = map[string]string{"rack": "r2"}
	requireSame(false, true)
	all[1] = b.DeepCopy()
	requireSame(true, false)
	require.NoError(t, e.Set(t.Context(), []*v1alpha1.DeviceAttributes{first}))
	requireSame(false, false)
	require.NoError(t, e.Set(t.Context(), nil))
	require.Equal(t, all, run())
	require.Same(t, a, run()[0])
}

func TestTouchesAndAffected(t *testing.T) {
	e := newEnricher(t,
		object("one", onNodes(map[string]string{"pool": "a"}), computed("x", "node.labels['rack']")),
		object("wrong", computed("x", "node.labels")))
	other := chips("node-a", 1)
	other.Spec.Driver = "other.example.com"
	require.True(t, e.Touches(chips("node-a", 1)))
	require.False(t, e.Touches(other))
	for name, test := range map[string]struct {
		before, after map[string]string
		want          bool
	}{
		"nothing":               {map[string]string{"pool": "a", "rack": "1"}, map[string]string{"pool": "a", "rack": "1"}, false},
		"another label":         {map[string]string{"pool": "a"}, map[string]string{"pool": "a", "zone": "1"}, false},
		"rack":                  {map[string]string{"pool": "a", "rack": "1"}, map[string]string{"pool": "a", "rack": "2"}, true},
		"rack is gone":          {map[string]string{"pool": "a", "rack": ""}, map[string]string{"pool": "a"}, true},
		"rack of an other pool": {map[string]string{"pool": "b", "rack": "1"}, map[string]string{"pool": "b", "rack": "2"}, false},
		"selected now":          {map[string]string{"rack": "1"}, map[string]string{"pool": "a", "rack": "1"}, true},
		"new node":              {nil, map[string]string{"pool": "a"}, true},
	} {
		require.Equal(t, test.want, e.Affected(test.before, test.after), name)
	}
	absent := object("absent", computed("x", "1"))
	absent.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	e = newEnricher(t, absent)
	require.True(t, e.Affected(nil, map[string]string{"a": "b"}), "a node without the label joins")
	require.False(t, e.Affected(map[string]string{"a": "b"}, map[string]string{"a": "c"}))
	require.True(t, e.Affected(map[string]string{"a": "b"}, map[string]string{"old": "1"}))
	for expression, want := range map[string]bool{
		"'other' in node.labels": true, "'x' in node.labels": false, "node.labels.size()": true, "node.labels.all(k, k != 'x')": true,
		"node.name": false, "1": false, "has(node.labels.other)": true, "node.labels[?'other']": true, "node.labels[device.name]": true,
		"node.labels[?'x'].orValue('') + node.labels[?'other'].orValue('')": true, "cel.bind(n, node, n.labels.size())": true,
	} {
		e := newEnricher(t, object("one", computed("x", expression)))
		require.Equal(t, want, e.Affected(map[string]string{"other": "1"}, map[string]string{"other": "2", "y": "1"}), expression)
	}
}

// TestStatusFollowsSlices checks the counts after changes of slices and nodes.
func TestStatusFollowsSlices(t *testing.T) {
	e := newEnricher(t, object("one", onNodes(map[string]string{"pool": "a"}), row("chip-0", values{"x": integer(1)}), row("chip-3", values{"x": integer(1)}), row("chip-4", values{"x": integer(1)})))
	nodes := labelsOf{"node-a": {"pool": "a"}}
	require3 := func(slices []*resourceapi.ResourceSlice, devices, attributes int, unmatched ...string) {
		t.Helper()
		_, report, err := e.Enrich(t.Context(), slices, nodes.get)
		require.NoError(t, err)
		require.Equal(t, devices, report.Objects[0].Devices)
		require.Equal(t, attributes, report.Objects[0].Attributes)
		require.Equal(t, unmatched, report.Objects[0].UnmatchedRows.First)
	}
	a, b := chips("node-a", 2), chips("node-b", 4)
	require3(nil, 0, 0, "chip-0", "chip-3", "chip-4")
	require3([]*resourceapi.ResourceSlice{a, b}, 2, 1, "chip-3", "chip-4")
	nodes["node-b"] = map[string]string{"pool": "a"} // the node joins
	require3([]*resourceapi.ResourceSlice{a, b}, 6, 3, "chip-4")
	restarted := chips("node-b", 5) // the driver restarts: the old slice is still there
	restarted.Spec.Pool.Generation = 2
	require3([]*resourceapi.ResourceSlice{a, b, restarted}, 7, 4)
	require3([]*resourceapi.ResourceSlice{a, restarted, b}, 7, 4)
	empty := chips("node-b", 0) // the newest generation has no device yet
	empty.Spec.Pool.Generation = 3
	require3([]*resourceapi.ResourceSlice{a, restarted, empty}, 2, 1, "chip-3", "chip-4")
	first, second := chips("node-a", 5), chips("node-a", 5) // a pool of two slices
	first.Spec.Devices, second.Spec.Devices = first.Spec.Devices[:2], second.Spec.Devices[2:]
	require3([]*resourceapi.ResourceSlice{first, second}, 5, 3)
}

func TestCancelled(t *testing.T) {
	cause := errors.New("the program ends")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := newEnricher(t, object("one", computed("x", "1")))
	a := chips("node-a", 1)
	before, _, err := e.Enrich(ctx, []*resourceapi.ResourceSlice{a}, nil)
	require.NoError(t, err)
	cancel(cause)
	require.ErrorIs(t, e.Set(ctx, []*v1alpha1.DeviceAttributes{object("two", computed("x", "2"))}), cause)
	_, _, err = e.Enrich(ctx, []*resourceapi.ResourceSlice{a, chips("node-b", 1)}, nil)
	require.ErrorIs(t, err, cause)
	after, report, err := e.Enrich(t.Context(), []*resourceapi.ResourceSlice{a}, nil)
	require.NoError(t, err)
	require.Same(t, before[0], after[0], "a call that failed forgets nothing")
	require.Equal(t, "one", report.Objects[0].Object.Name)
}

// TestConcurrent lets the race detector check calls at the same time. Each result must be of one version of the objects.
func TestConcurrent(t *testing.T) {
	e := newEnricher(t)
	slices := []*resourceapi.ResourceSlice{chips("node-a", 4), chips("node-b", 4)}
	nodes := labelsOf{"node-a": {"rack": "r1"}, "node-b": {"rack": "r1"}}
	var group errgroup.Group
	for i := range 4 {
		group.Go(func() error {
			for n := range 50 {
				value := fmt.Sprint(i*50 + n)
				if err := e.Set(t.Context(), []*v1alpha1.DeviceAttributes{object("one", computed("x", value), computed("y", value))}); err != nil {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			for range 50 {
				enriched, report, err := e.Enrich(t.Context(), slices, nodes.get)
				if err != nil {
					return err
				}
				_, hasOrigin := report.Origin(driver, "node-a", "chip-0", "topology.celset.dev/x")
				of := enriched[0].Spec.Devices[0].Attributes
				x, has := of["topology.celset.dev/x"]
				if has != hasOrigin || has && *x.IntValue != *of["topology.celset.dev/y"].IntValue {
					return fmt.Errorf("mixed attributes %v, origin %t", of, hasOrigin)
				}
				e.Touches(slices[0])
				e.Affected(nodes["node-a"], nodes["node-b"])
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

func TestStatus(t *testing.T) {
	now, later := metav1.Unix(100, 0), metav1.Unix(200, 0)
	slices := []*resourceapi.ResourceSlice{chips("node-a", 20)}
	o := object("one", computed("x", "device.attributes['chip.example.com'].missing"), row("chip-0", values{"y": integer(1)}))
	for i := range 20 {
		row(fmt.Sprint("gone-", i), values{"y": integer(1)})(&o.Spec)
	}
	_, report := enrich(t, nil, slices, o, object("two", row("chip-0", values{"y": integer(2)})))
	status := report.Objects[0].Status(now)
	require.Equal(t, int64(1), status.ObservedGeneration)
	require.Equal(t, int32(20), status.Devices)
	require.Zero(t, status.Attributes)
	require.Equal(t, int32(20), status.UnmatchedRows.Count)
	require.Len(t, status.UnmatchedRows.Keys, 10)
	require.Equal(t, int32(20), status.FailedExpressions.Count)
	require.Len(t, status.FailedExpressions.First, 10)
	require.Equal(t, v1alpha1.AttributeConflict{Attribute: "topology.celset.dev/y", Device: "chip.example.com/node-a/chip-0", Object: "two"}, status.Conflicts.First[0])
	require.Equal(t, []string{
		"Accepted True Accepted: The object is in effect.",
		"Complete False EvaluationFailed: 20 evaluations failed, the first is attribute x of chip.example.com/node-a/chip-0: no such key: missing. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
		"Conflicted True DifferentValues: 1 attributes have different values, the first is topology.celset.dev/y of chip.example.com/node-a/chip-0, also in object two: remove one of the definitions.",
	}, conditions(status))

	report.Objects[0].Object.Status = status
	require.Equal(t, status, report.Objects[0].Status(later), "an unchanged status has unchanged times")

	o = o.DeepCopy()
	o.Generation, o.Spec.Attributes = 2, nil
	_, report = enrich(t, nil, slices, o)
	status = report.Objects[0].Status(later)
	require.Equal(t, []string{
		"Accepted True Accepted: The object is in effect.",
		`Complete False RowsUnmatched: 20 rows match no device, the first has the key "gone-0": compare the keys with name of the devices.`,
		"Conflicted False NoConflict: No other object defines an attribute differently.",
	}, conditions(status))
	require.Equal(t, now, status.Conditions[1].LastTransitionTime)
	require.Equal(t, later, status.Conditions[2].LastTransitionTime)
	require.Nil(t, status.FailedExpressions)
	require.Nil(t, status.Conflicts)

	o.Spec.Table.Rows = o.Spec.Table.Rows[:1]
	_, report = enrich(t, nil, slices, o)
	require.Equal(t, "Complete True Complete: 20 devices have 1 attributes of the object.", conditions(report.Objects[0].Status(now))[1])

	o.Spec.Domain = driver
	_, report = enrich(t, nil, slices, o)
	require.Equal(t, []string{
		`Accepted False InvalidSpec: spec.domain "chip.example.com" is the name of the driver, which publishes in this domain: choose another domain, or leave domain out`,
		"Complete False NotInEffect: The object is not accepted.",
		"Conflicted False NoConflict: No other object defines an attribute differently.",
	}, conditions(report.Objects[0].Status(now)))
}

func conditions(of v1alpha1.DeviceAttributesStatus) (texts []string) {
	for _, c := range of.Conditions {
		texts = append(texts, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}
