// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/policy"
)

// withNames gives devices names.
func withNames(devices []resourceapi.Device) []resourceapi.Device {
	for i := range devices {
		devices[i].Name = fmt.Sprint("device-", i)
	}
	return devices
}

// judged tells for each device whether it passes, and for how many of them the selectors of
// the first request were evaluated.
func (s *search) judged(t testing.TB) (passes []bool, evaluated int) {
	t.Helper()
	r := s.requests[0][0][0]
	evaluations := 0
	s.evaluator.Context = watched{t.Context(), func() { evaluations++ }}
	for _, c := range s.inventory.Candidates {
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

// Selectors are evaluated once for devices in a row that look the same to them.
func TestSelectorsSeeDevicesOnce(t *testing.T) {
	const (
		memory = "device.capacity['mla.example.com'].memory.compareTo(quantity('4Gi')) >= 0"
		many   = "device.allowMultipleAllocations == true"
	)
	of := func(devices ...resourceapi.Device) []*sliceBuilder {
		return []*sliceBuilder{slice("1", withNames(devices)...)}
	}
	with := func(edits ...func(*resourceapi.Device)) resourceapi.Device { return newDevice("", nil, edits...) }
	here, there := with(onAny), with(elsewhere)
	for name, test := range map[string]struct {
		slices    []*sliceBuilder
		class     *resourceapi.DeviceClass
		selectors []string
		evaluated int
		passes    []bool
	}{
		"no selectors":           {slices: of(ring(3)...), evaluated: 1, passes: []bool{true, true, true}},
		"nothing is read":        {slices: of(ring(3)...), selectors: []string{"device.driver == 'mla.example.com'"}, evaluated: 1, passes: []bool{true, true, true}},
		"refused":                {slices: of(ring(3)...), selectors: []string{"device.driver == 'other.example.com'"}, evaluated: 1, passes: []bool{false, false, false}},
		"something else is read": {slices: of(mesh(2, 2)...), selectors: []string{"device.attributes['mla.example.com'].row > 0"}, evaluated: 2, passes: []bool{false, false, true, true}},
		"by the class":           {slices: of(mesh(2, 2)...), class: classOf("low", "device.attributes['mla.example.com'].row > 0"), evaluated: 2, passes: []bool{false, false, true, true}},
		"by both":                {slices: of(mesh(2, 2)...), class: classOf("low", "device.attributes['mla.example.com'].row > 0"), selectors: []string{"device.attributes['mla.example.com'].col > 0"}, evaluated: 4, passes: []bool{false, false, false, true}},
		"any may be read":        {slices: of(ring(3)...), selectors: []string{"device.attributes[device.driver].size() == 1"}, evaluated: 3, passes: []bool{true, true, true}},
		"capacity":               {slices: of(with(policy.Having("memory", "2Gi", nil)), with(policy.Having("memory", "4Gi", nil)), with(policy.Having("memory", "4Gi", policy.Default("1Gi")))), selectors: []string{memory}, evaluated: 2, passes: []bool{false, true, true}},
		"capacity of the name":   {slices: of(with(policy.Having("memory", "2Gi", nil)), with(policy.Having("cores", "2Gi", nil))), selectors: []string{"'memory' in device.capacity['mla.example.com']"}, evaluated: 2, passes: []bool{true, false}},
		"more capacities":        {slices: of(with(policy.Having("memory", "2Gi", nil)), with(policy.Having("memory", "2Gi", nil), policy.Having("cores", "1", nil))), selectors: []string{"'cores' in device.capacity['mla.example.com']"}, evaluated: 2, passes: []bool{false, true}},
		"shared":                 {slices: of(with(), with(shared), with(shared)), selectors: []string{many}, evaluated: 2, passes: []bool{false, true, true}},
		"other drivers": {
			slices:    []*sliceBuilder{slice("1", ring(2)...), slice("2", ring(2)...).driver("other.example.com")},
			selectors: []string{"device.driver == 'mla.example.com'"}, evaluated: 2, passes: []bool{true, true, false, false},
		},
		"read of other drivers": {
			slices:    []*sliceBuilder{slice("1", ring(2)...), slice("2", ring(2)...).driver("other.example.com")},
			selectors: []string{"device.attributes['other.example.com'].?index.orValue(1) == 1"}, evaluated: 3, passes: []bool{true, true, false, true},
		},
		"selected by node": {slices: []*sliceBuilder{slice("1", withNames([]resourceapi.Device{here, there, here})...).perDevice()}, evaluated: 3, passes: []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := claim("c").want("x", 1, test.selectors...)
			var classes []*resourceapi.DeviceClass
			if test.class != nil {
				wanted, classes = wanted.class(test.class.Name), []*resourceapi.DeviceClass{test.class}
			}
			s := scenario{slices: test.slices, classes: classes, claims: []*claimBuilder{wanted}}
			passes, evaluated := s.search(t).judged(t)
			require.Equal(t, test.passes, passes)
			require.Equal(t, test.evaluated, evaluated)

			passes, evaluated = s.with(WithExhaustiveSearch()).search(t).judged(t)
			require.Equal(t, test.passes, passes)
			require.Len(t, passes, evaluated, "the reference evaluates all")
		})
	}
}

// Whatever devices have and selectors read: it is as if each were evaluated.
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
		for i, driver := range []string{driver, otherDriver} {
			devices := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) resourceapi.Device {
				return changed(t, rapid.SampledFrom(models).Draw(t, "model"))
			}), 1, 6).Draw(rt, "devices")
			slices = append(slices, slice(fmt.Sprint(i), withNames(devices)...).driver(driver))
		}
		all := scenario{slices: slices, classes: []*resourceapi.DeviceClass{inClass}, claims: []*claimBuilder{
			claim("c").want("x", 1, texts.Draw(rt, "selectors")...).class("any"),
		}}
		each := all.with(WithExhaustiveSearch()).search(t).requests[0][0][0]
		s := all.search(t)
		r := s.requests[0][0][0]
		for _, c := range rapid.Permutation(s.inventory.Candidates).Draw(rt, "order") {
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

// anyDevice has few attributes and capacities.
func anyDevice(t *rapid.T) resourceapi.Device {
	d := newDevice("", nil)
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		d = changed(t, d)
	}
	return d
}

// changed has something more or less or else than a device, or nothing.
func changed(t *rapid.T, d resourceapi.Device) resourceapi.Device {
	d = *d.DeepCopy()
	set := func(name resourceapi.QualifiedName, values ...any) func(*resourceapi.Device) {
		return func(d *resourceapi.Device) {
			d.Attributes[name] = newDevice("", attrs{name: rapid.SampledFrom(values).Draw(t, "value")}).Attributes[name]
		}
	}
	rapid.SampledFrom([]func(*resourceapi.Device){
		func(*resourceapi.Device) {},
		// One may be what upstream's evaluator does not know: which of several it names is chance.
		set("serial", "1", "2", 1, []string{"1"}, []string{"1", "2"}, true, resourceapi.DeviceAttribute{}),
		set("index", 0, 1, 2, []int64{}, []int64{1}),
		set("other.example.com/index", 0, 1),
		func(d *resourceapi.Device) { delete(d.Attributes, "serial") },
		shared, policy.Having("memory", "1Gi", nil), policy.Having("memory", "4Gi", nil), policy.Having("memory", "4Gi", policy.Default("1Gi")), policy.Having("cores", "1", nil),
	}).Draw(t, "change")(&d)
	return d
}

// Devices are of one kind if they are the same in what constraints read, to selectors, and in
// being free.
func TestKindsOfDevices(t *testing.T) {
	of := func(all ...attrs) []resourceapi.Device {
		var devices []resourceapi.Device
		for _, a := range all {
			devices = append(devices, newDevice("", a))
		}
		return devices
	}
	const serial = "device.attributes['mla.example.com'].?serial.orValue('')"
	for name, test := range map[string]struct {
		devices   []resourceapi.Device
		selectors []string
		inUse     []string
		want      []int
	}{
		"all equal":             {devices: of(nil, nil, nil), want: []int{0, 0, 0}},
		"none":                  {devices: ring(3)},
		"read":                  {devices: of(attrs{"index": 1}, attrs{"index": 2}, attrs{"index": 1}), want: []int{0, 1, 0}},
		"type":                  {devices: of(attrs{"index": 1}, attrs{"index": "1"}, attrs{"index": 1}), want: []int{0, 1, 0}},
		"not read":              {devices: of(attrs{"serial": "1"}, attrs{"serial": "2"}, nil), want: []int{0, 0, 0}},
		"by the selector":       {devices: of(attrs{"serial": "1"}, attrs{"serial": "2"}, nil), selectors: []string{serial + " != '1'"}, want: []int{0, 1, 1}},
		"failing selector":      {devices: of(nil, nil, attrs{"serial": 1}, attrs{"serial": 1}), selectors: []string{serial + " + '' == ''"}, want: []int{0, 0, 1, 2}},
		"in use":                {devices: of(nil, nil, nil), inUse: []string{"device-1"}, want: []int{0, 1, 0}},
		"capacity":              {devices: []resourceapi.Device{newDevice("", nil), newDevice("", nil, policy.Having("memory", "1Gi", nil)), newDevice("", nil)}, want: []int{0, 1, 0}},
		"empty lists and none":  {devices: of(attrs{"index": []int64{}}, attrs{"index": resourceapi.DeviceAttribute{}}, attrs{"index": []int64{}}, attrs{"index": resourceapi.DeviceAttribute{}}), want: []int{0, 1, 2, 1}},
		"empty lists, not read": {devices: of(attrs{"serial": []int64{}}, nil), want: []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{
				slices: []*sliceBuilder{slice("1", withNames(test.devices)...)}, inUse: test.inUse,
				claims: []*claimBuilder{claim("c").want("x", 2, test.selectors...).cel("e").define("e", "devices.exists(d, d.attributes['mla.example.com'].?index.orValue(0) == 0)")},
			}.search(t)
			require.Len(t, s.inventory.Candidates, len(test.devices))
			require.Equal(t, test.want, s.symmetry.classOf())
		})
	}
}

// Of devices that are the same to an expression which only evaluation tells to be false, one
// is tried.
func TestEqualDevicesAreTriedOnce(t *testing.T) {
	for _, test := range []struct {
		read  string
		tried int64
	}{{"serial", 1}, {"index", 8}} {
		devices := ring(8)
		for i := range devices {
			devices[i].Attributes["serial"] = resourceapi.DeviceAttribute{StringValue: new(string)}
		}
		s := scenario{
			slices: []*sliceBuilder{slice("1", devices...)},
			claims: []*claimBuilder{claim("c").want("x", 1).cel("never").define("never", strings.ReplaceAll(unread, "index", test.read))},
		}.search(t)
		found, err := s.run()
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, []int64{test.tried, 8 - test.tried}, []int64{s.celConstraints[0].evaluations, s.symmetry.passedOver}, test.read)
	}
}
