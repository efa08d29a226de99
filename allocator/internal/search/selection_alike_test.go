// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/policy"
)

// withNames sets the names of devices.
func withNames(devices []resourceapi.Device) []resourceapi.Device {
	for i := range devices {
		devices[i].Name = fmt.Sprint("device-", i)
	}
	return devices
}

// judged returns whether each device passes the selectors of the first request. evaluated is the number of devices that the
// selectors were evaluated for.
func judged(t testing.TB, s *Search) (passes []bool, evaluated int) {
	t.Helper()
	r := s.Requests[0][0][0]
	evaluations := 0
	s.evaluator.Context = watched{t.Context(), func() { evaluations++ }}
	for _, c := range s.Inventory.Candidates {
		watched, evaluatedBefore := evaluations, s.evaluator.Evaluated
		pass, err := r.isSelected(c)
		require.NoError(t, err)
		isLikeLast := s.evaluator.Evaluated == evaluatedBefore
		if !isLikeLast {
			evaluated++
		}
		if len(r.Class.Spec.Selectors)+len(r.Spec.Selectors) > 0 {
			require.Equal(t, isLikeLast, evaluations == watched)
		}
		passes = append(passes, pass)
	}
	return passes, evaluated
}

// The selectors are evaluated once for consecutive devices that differ only in attributes that no selector reads.
func TestSelectorsSeeDevicesOnce(t *testing.T) {
	const (
		three   = "devices 3 mla-# index=#; claim c; want x 1"
		mesh    = "device a row=0 col=0; device b row=0 col=1; device c row=1 col=0; device d row=1 col=1; claim c; want x 1"
		drivers = "slice 1; devices 2 mla-# index=#; slice 2 driver=other.example.com; devices 2 mla-# index=#; claim c; want x 1"
		low     = "class low if $device.row > 0; "
	)
	for name, test := range map[string]struct {
		statements string
		evaluated  int
		passes     []bool
	}{
		"no selectors":           {three, 1, []bool{true, true, true}},
		"nothing is read":        {three + " if device.driver == 'mla.example.com'", 1, []bool{true, true, true}},
		"refused":                {three + " if device.driver == 'other.example.com'", 1, []bool{false, false, false}},
		"something else is read": {mesh + " if $device.row > 0", 2, []bool{false, false, true, true}},
		"by the class":           {low + mesh + " class=low", 2, []bool{false, false, true, true}},
		"by both":                {low + mesh + " class=low if $device.col > 0", 4, []bool{false, false, false, true}},
		"any may be read":        {three + " if device.attributes[device.driver].size() == 1", 3, []bool{true, true, true}},
		"capacity": {"device a memory:2Gi; device b memory:4Gi; device c memory:4Gi(default=1Gi); claim c; " +
			"want x 1 if device.capacity['mla.example.com'].memory.compareTo(quantity('4Gi')) >= 0", 2, []bool{false, true, true}},
		"capacity of the name":  {"device a memory:2Gi; device b cores:2Gi; claim c; want x 1 if 'memory' in device.capacity['mla.example.com']", 2, []bool{true, false}},
		"more capacities":       {"device a memory:2Gi; device b memory:2Gi cores:1; claim c; want x 1 if 'cores' in device.capacity['mla.example.com']", 2, []bool{false, true}},
		"shared":                {"device a; device b +shared; device c +shared; claim c; want x 1 if device.allowMultipleAllocations == true", 2, []bool{false, true, true}},
		"other drivers":         {drivers + " if device.driver == 'mla.example.com'", 2, []bool{true, true, false, false}},
		"read of other drivers": {drivers + " if device.attributes['other.example.com'].?index.orValue(1) == 1", 3, []bool{true, true, false, true}},
		"selected by node":      {"slice 1 per-device; device a +everywhere; device b +node=node-2; device c +everywhere; claim c; want x 1", 3, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, test.statements)
			passes, evaluated := judged(t, s.search(t))
			require.Equal(t, test.passes, passes)
			require.Equal(t, test.evaluated, evaluated)

			passes, evaluated = judged(t, s.with(unbounded).search(t))
			require.Equal(t, test.passes, passes)
			require.Len(t, passes, evaluated, "the reference evaluates all")
		})
	}
}

// For random devices and selectors, the verdicts are the same as if the selectors were evaluated for each device.
func TestSelectorsAsIfEvaluated(t *testing.T) {
	selectors := []string{
		"true", "device.driver == '" + driver + "'", index + " > 1", "has(device.attributes['" + driver + "'].serial)",
		"device.attributes['" + driver + "'].?serial.orValue('') != '1'", "1 / " + index + " == 1",
		"device.attributes['" + driver + "'].size() == 2", "device.allowMultipleAllocations == true",
		"device.capacity['" + driver + "'].?memory.orValue(quantity('2Gi')).compareTo(quantity('1Gi')) > 0",
		"device.attributes['other.example.com'].?index.orValue(0) == 0",
	}
	saved := 0
	cases.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.SampledFrom(selectors), 0, 2)
		inClass := classOf("any", texts.Draw(rt, "class")...)
		models := rapid.SliceOfN(rapid.Custom(anyDevice), 1, 3).Draw(rt, "models")
		var slices []*sliceBuilder
		for i, driver := range []string{driver, "nic.example.com"} {
			devices := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) resourceapi.Device {
				return changed(t, rapid.SampledFrom(models).Draw(t, "model"))
			}), 1, 6).Draw(rt, "devices")
			slices = append(slices, slice(fmt.Sprint(i), withNames(devices)...).Driver(driver))
		}
		all := scenario{Slices: slices, Classes: []*resourceapi.DeviceClass{inClass}, Claims: []*claimBuilder{
			claim("c").Want("x", 1, texts.Draw(rt, "selectors")...).Class("any"),
		}}
		each := all.with(unbounded).search(t).Requests[0][0][0]
		s := all.search(t)
		r := s.Requests[0][0][0]
		for _, c := range rapid.Permutation(s.Inventory.Candidates).Draw(rt, "order") {
			want, wantErr := each.isSelected(c)
			before := s.evaluator.Evaluated
			got, err := r.isSelected(c)
			if s.evaluator.Evaluated == before {
				saved++
			}
			require.Equal(rt, want, got, "%s", c.ID)
			if wantErr == nil {
				require.NoError(rt, err)
			} else {
				require.EqualError(rt, err, wantErr.Error())
			}
		}
	})
	require.Positive(t, saved)
}

// anyDevice draws a device with few attributes and capacities.
func anyDevice(t *rapid.T) resourceapi.Device {
	d := newDevice("", nil)
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		d = changed(t, d)
	}
	return d
}

// changed returns a copy of a device with at most one random change.
func changed(t *rapid.T, d resourceapi.Device) resourceapi.Device {
	d = *d.DeepCopy()
	set := func(name resourceapi.QualifiedName, values ...any) func(*resourceapi.Device) {
		return func(d *resourceapi.Device) {
			d.Attributes[name] = newDevice("", attrs{name: rapid.SampledFrom(values).Draw(t, "value")}).Attributes[name]
		}
	}
	rapid.SampledFrom([]func(*resourceapi.Device){
		func(*resourceapi.Device) {},
		// At most one attribute is invalid for upstream's evaluator. With several, upstream's error names a random one.
		set("serial", "1", "2", 1, []string{"1"}, []string{"1", "2"}, true, resourceapi.DeviceAttribute{}),
		set("index", 0, 1, 2, []int64{}, []int64{1}),
		set("other.example.com/index", 0, 1),
		func(d *resourceapi.Device) { delete(d.Attributes, "serial") },
		shared, policy.Having("memory", "1Gi", nil), policy.Having("memory", "4Gi", nil), policy.Having("memory", "4Gi", policy.Default("1Gi")), policy.Having("cores", "1", nil),
	}).Draw(t, "change")(&d)
	return d
}

// Two devices are symmetric if they have equal values of the attributes that constraints read, equal verdicts of the selectors,
// and both are free or both are in use.
func TestKindsOfDevices(t *testing.T) {
	const serial = "$device.?serial.orValue('')"
	for name, test := range map[string]struct {
		devices, selector string
		want              []int
	}{
		"all equal":             {"device a; device b; device c", "", []int{0, 0, 0}},
		"none":                  {"devices 3 mla-# index=#", "", nil},
		"read":                  {"device a index=1; device b index=2; device c index=1", "", []int{0, 1, 0}},
		"type":                  {`device a index=1; device b index="1"; device c index=1`, "", []int{0, 1, 0}},
		"not read":              {`device a serial="1"; device b serial="2"; device c`, "", []int{0, 0, 0}},
		"by the selector":       {`device a serial="1"; device b serial="2"; device c`, " if " + serial + " != '1'", []int{0, 1, 1}},
		"failing selector":      {"device a; device b; device c serial=1; device d serial=1", " if " + serial + " + '' == ''", []int{0, 0, 1, 2}},
		"in use":                {"device a; device b; device c; allocated b", "", []int{0, 1, 0}},
		"capacity":              {"device a; device b memory:1Gi; device c", "", []int{0, 1, 0}},
		"empty lists and none":  {"device a index=[]; device b index=?; device c index=[]; device d index=?", "", []int{0, 1, 2, 1}},
		"empty lists, not read": {"device a serial=[]; device b", "", []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, test.devices+"; claim c; want x 2"+test.selector+"; cel e = devices.exists(d, $at.?index.orValue(0) == 0)").search(t)
			require.Equal(t, test.want, s.symmetry.classOf())
		})
	}
}
