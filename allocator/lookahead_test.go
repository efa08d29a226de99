// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/policy"
)

// kind selects devices by the attribute of that name.
func kind(value string) string {
	return fmt.Sprintf("device.attributes['%s'].kind == '%s'", driver, value)
}

// grouped makes devices of two colors.
func grouped(red, blue int) []resourceapi.Device {
	devices := make([]resourceapi.Device, red+blue)
	for i := range devices {
		c := "red"
		if i >= red {
			c = "blue"
		}
		devices[i] = newDevice(fmt.Sprintf("mla-%d", i), attrs{"color": c})
	}
	return devices
}

// oneShort makes n GPUs on a root each, and a NIC on all roots but the last.
func oneShort(n int) []resourceapi.Device {
	var devices []resourceapi.Device
	for i := range n {
		devices = append(devices, newDevice(fmt.Sprintf("gpu-%d", i), attrs{"kind": "gpu", "root": i}))
	}
	for i := range n - 1 {
		devices = append(devices, newDevice(fmt.Sprintf("nic-%d", i), attrs{"kind": "nic", "root": i}))
	}
	return devices
}

// pairs wants n GPUs, each with a NIC on its root.
func pairs(n int) *claimBuilder {
	c := claim("c")
	for i := range n {
		gpu, nic := fmt.Sprintf("gpu-%d", i), fmt.Sprintf("nic-%d", i)
		c.want(gpu, 1, kind("gpu")).want(nic, 1, kind("nic")).match(driver+"/root", gpu, nic)
	}
	return c
}

// onRoots makes roots with so many GPUs and NICs on each.
func onRoots(roots, perRoot int) []resourceapi.Device {
	var devices []resourceapi.Device
	for _, kind := range []string{"gpu", "nic"} {
		for i := range roots * perRoot {
			devices = append(devices, newDevice(fmt.Sprintf("%s-%d", kind, i), attrs{"kind": kind, "root": i / perRoot}))
		}
	}
	return devices
}

// twos wants n times two GPUs and a NIC on one root.
func twos(n int) *claimBuilder {
	c := claim("c")
	for i := range n {
		gpus, nic := fmt.Sprintf("gpus-%d", i), fmt.Sprintf("nic-%d", i)
		c.want(gpus, 2, kind("gpu")).want(nic, 1, kind("nic")).match(driver+"/root", gpus, nic)
	}
	return c
}

func singles(n int) *claimBuilder {
	c := claim("c")
	for i := range n {
		c.want(fmt.Sprintf("x-%d", i), 1)
	}
	return c
}

// eightWays wants n-1 devices, each by one of eight alternatives that can all be
// had, and one that can't.
func eightWays(n int) *claimBuilder {
	c := claim("c")
	for i := range n {
		var alternatives []resourceapi.DeviceSubRequest
		for j := range 8 {
			alternative := sub(fmt.Sprintf("sub-%d", j), 1)
			if i == n-1 {
				alternative = sub(fmt.Sprintf("sub-%d", j), 1, index+" < 0")
			}
			alternatives = append(alternatives, alternative)
		}
		c.firstAvailable(fmt.Sprintf("x-%d", i), alternatives...)
	}
	return c
}

// halves are n GPUs that can be had whole or as two halves.
func halves(n int) []*sliceBuilder {
	sets := make(map[string]amounts, n)
	var devices []resourceapi.Device
	for i := range n {
		gpu := fmt.Sprintf("gpu-%d", i)
		sets[gpu] = amounts{"memory": "80Gi", "slices": "2"}
		devices = append(devices,
			newDevice(gpu, attrs{"kind": "whole"}, consuming(gpu, sets[gpu])),
			newDevice(gpu+"-0", attrs{"kind": "half"}, consuming(gpu, amounts{"memory": "40Gi", "slices": "1"})),
			newDevice(gpu+"-1", attrs{"kind": "half"}, consuming(gpu, amounts{"memory": "40Gi", "slices": "1"})),
		)
	}
	return []*sliceBuilder{slice("1", devices...).pool("pool-1", 1, 2), providing("2", sets)}
}

// What an exhaustive search takes 2^n steps and more for.
func TestBoundsCut(t *testing.T) {
	mlas := func(n int) []*sliceBuilder { return []*sliceBuilder{slice("1", ring(n)...)} }
	for name, test := range map[string]struct {
		slices []*sliceBuilder
		claim  *claimBuilder
		found  bool
		steps  int64
	}{
		"one device short":                      {mlas(25), claim("c").want("x", 26), false, 326},
		"one device short, most":                {mlas(31), claim("c").want("x", 32), false, 497},
		"one device short, by requests":         {mlas(10), singles(11), false, 56},
		"many requests":                         {mlas(31), singles(32), false, 497},
		"first group is one device short":       {[]*sliceBuilder{slice("1", grouped(19, 20)...)}, claim("c").want("x", 20).match(color), true, 212},
		"both groups are":                       {[]*sliceBuilder{slice("1", grouped(19, 19)...)}, claim("c").want("x", 20).match(color), false, 210},
		"too few values":                        {[]*sliceBuilder{slice("1", grouped(15, 15)...)}, claim("c").want("x", 3).distinct(color), false, 46},
		"root without NIC":                      {[]*sliceBuilder{slice("1", oneShort(10)...)}, pairs(10), false, 293},
		"root without NIC, another with two":    {[]*sliceBuilder{slice("1", append(oneShort(10), newDevice("nic-9", attrs{"kind": "nic", "root": 0}))...)}, pairs(10), false, 288},
		"three GPUs a root, two wanted on each": {[]*sliceBuilder{slice("1", onRoots(4, 3)...)}, twos(5), false, 104},
		"groups too small for many requests":    {[]*sliceBuilder{slice("1", grouped(9, 9)...)}, singles(10).match(color), false, 55},
		"too few values for many requests":      {[]*sliceBuilder{slice("1", grouped(9, 9)...)}, singles(10).distinct(color), false, 28},
		"three times eight alternatives":        {mlas(8), eightWays(3), false, 23},
		"four times eight alternatives":         {mlas(8), eightWays(4), false, 41},
		"one partition short":                   {halves(8), claim("c").want("x", 17), false, 109},
		"one half short":                        {halves(8), claim("c").want("x", 17, kind("half")), false, 137},
		"two requests together":                 {mlas(31), claim("c").want("x", 16).want("y", 16), false, 497},
		"all sets of 24":                        {mlas(24), claim("c").want("x", 8).want("y", 1, index+" < 0"), false, 669},
		"all sets of 32":                        {mlas(32), claim("c").want("x", 8).want("y", 1, index+" < 0"), false, 957},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: test.slices, claims: []*claimBuilder{test.claim}}
			for name, features := range map[string]*structured.Features{"scalars": nil, "lists": listsOn} {
				s.features = features
				a := s.allocator(t)
				results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
				require.NoError(t, err)
				require.Equal(t, test.found, results != nil)
				require.LessOrEqual(t, a.Stats().Steps, test.steps, name)
			}
		})
	}
}

// Devices that can't be had without a feature are known to be none.
func TestBoundsCutWithoutFeatures(t *testing.T) {
	devices := append(ring(17), newDevice("bound", nil, func(d *resourceapi.Device) { d.BindingConditions = []string{"ready"} }))
	s := scenario{
		features: with(func(f *structured.Features) { f.DeviceBindingAndStatus = false }),
		slices:   []*sliceBuilder{slice("1", devices...)},
		claims:   []*claimBuilder{claim("c").want("x", 18, index+" >= 0")},
	}
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	require.Nil(t, results)
	require.LessOrEqual(t, a.Stats().Steps, int64(154))
}

// What can be had more than once, or by everybody, is not counted.
func TestBoundsOfReusableDevices(t *testing.T) {
	pair := func(c *claimBuilder, i int) *claimBuilder {
		x, y := fmt.Sprintf("x-%d", i), fmt.Sprintf("y-%d", i)
		return c.want(x, 1).want(y, 1).match(color, x, y)
	}
	red := func(d *resourceapi.Device) {
		d.Attributes["color"] = resourceapi.DeviceAttribute{StringValue: ptr.To("red")}
	}
	s := scenario{slices: []*sliceBuilder{slice("1", newDevice("a", attrs{"color": "blue"}), newDevice("b", nil, shared, red))}}
	// b serves all four, after a was tried in vain.
	s.claims = []*claimBuilder{pair(pair(claim("c"), 0), 1)}
	s.requireDevices(t, "x-0=b", "y-0=b", "x-1=b", "y-1=b")
	// Each claim gets a once, with admin access.
	s.slices = []*sliceBuilder{slice("1", newDevice("a", attrs{"index": 1}), newDevice("b", attrs{"index": 0}))}
	s.claims = []*claimBuilder{claim("c").want("x", 1).admin().want("y", 1, index+" == 1").admin(), claim("d").want("x", 1).admin().want("y", 1, index+" == 1").admin()}
	s.requireDevices(t, "x=b", "y=a", "x=b", "y=a")
}

// Constraints that say the same twice ask for one set only, and requests for
// nothing take no room.
func TestBoundsOfRepeatedConstraints(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", newDevice("a", attrs{"root": 1}), newDevice("b", attrs{"root": 2}), newDevice("c", attrs{"root": 2}))},
		claims: []*claimBuilder{claim("c").want("x", 1).want("y", 1).match(driver+"/root", "x", "y").match(driver+"/root", "x", "y")},
	}
	s.requireDevices(t, "x=b", "y=c")
	s.claims = []*claimBuilder{claim("c").want("w", 2).match(driver+"/root", "w").want("z", 0).match(driver+"/root", "z")}
	s.requireDevices(t, "w=b", "w=c")
}

// The bounds see what was allocated and taken before, and other claims.
func TestBoundsCutOverClaims(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(32)...)},
		inUse:  []string{"mla-0", "mla-31"},
		claims: []*claimBuilder{claim("a").want("x", 15), claim("b").want("y", 16)},
	}
	a := s.allocator(t)
	results, err := a.Allocate(t.Context(), s.onNode(), s.apiClaims())
	require.NoError(t, err)
	require.Nil(t, results)
	require.LessOrEqual(t, a.Stats().Steps, int64(482))
}

// Each of these is a branch in which too few devices are left, and in which the
// search meets an error before it finds out. The error is the answer.
func TestBoundsHideNoError(t *testing.T) {
	const (
		failing = "1 / (" + index + " - 3) < 2"
		broken  = "1 / 0 == 1"
	)
	for name, test := range map[string]struct {
		claim   *claimBuilder
		message string
	}{
		"selector on a later device":           {claim("c").want("x", 2, index+" < 1 || 1 / ("+index+" - 3) > 5"), "device mla.example.com/pool-1/mla-3"},
		"selector of a later request":          {claim("c").want("x", 3).want("y", 2, failing), "device mla.example.com/pool-1/mla-3"},
		"selector of a later alternative":      {claim("c").want("x", 3).firstAvailable("y", sub("a", 5), sub("b", 1, failing)), "device mla.example.com/pool-1/mla-3"},
		"selector after a vain search":         {claim("c").want("x", 2).firstAvailable("y", sub("a", 4), sub("b", 3, failing)), "device mla.example.com/pool-1/mla-3"},
		"derived attribute":                    {claim("c").want("x", 5).derive(color, "1 / ("+index+" - 3)").match(color), "derived attribute mla.example.com/color: evaluate on device mla.example.com/pool-1/mla-3"},
		"derived attribute of later request":   {claim("c").want("x", 2).want("y", 3).derive(color, "1 / ("+index+" - 3)").distinct(color, "y"), "derived attribute mla.example.com/color: evaluate on device mla.example.com/pool-1/mla-3"},
		"CEL constraint of an earlier set":     {claim("c").want("x", 2).want("y", 4).cel("broken", "x").define("broken", broken), "division by zero"},
		"CEL constraint before a matching":     {claim("c").want("x", 2).cel("broken").match(driver+"/index").define("broken", "1 / ("+indices+"[0] - 1) < 2"), "devices [mla.example.com/pool-1/mla-1, mla.example.com/pool-1/mla-2]"},
		"all whose first device is free again": {claim("c").want("x", 1, index+" > 1").wantAll("y", index+" > 1").match(driver+"/index", "y").want("z", 3, index+" > 1"), "request y: cannot add device mla.example.com/pool-1/mla-3"},
		"constraint of all":                    {claim("c").want("x", 2).firstAvailable("y", sub("a", 4), sub("b", 1)).wantAll("z", index+" > 2").match(driver+"/index", "z"), "cannot add device mla.example.com/pool-1/mla-4"},
		"capacity":                             {claim("c").want("x", 4).want("y", 2).capacity("memory", "1e19"), "capacity request cannot be represented"},
	} {
		t.Run(name, func(t *testing.T) {
			devices := ring(5)
			policy.Having("memory", "10", policy.Range("1", "", "1"))(&devices[4])
			s := scenario{slices: []*sliceBuilder{slice("1", devices...)}, claims: []*claimBuilder{test.claim}}
			s.requireError(t, test.message)
			s.opts = []Option{WithExhaustiveSearch()}
			s.requireError(t, test.message)
		})
	}
}

// An alternative that makes a claim too large ends the search for other devices of
// the requests before it, and so no error is met on those. A bound must not take
// its place.
func TestBoundsRespectTheLimit(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{slice("1", ring(20)...)},
		claims: []*claimBuilder{
			claim("c").firstAvailable("w", sub("in vain", 25), sub("nothing", 0)).
				firstAvailable("x", sub("two", 2, "1 / ("+index+" - 5) < 2"), sub("one", 1)).want("y", 31),
		},
	}.requireNone(t)
}

// Requests are of one kind if the same devices can be had for them.
func TestSameKind(t *testing.T) {
	plain := func() *claimBuilder { return claim("c").want("x", 1, "true") }
	for name, test := range map[string]struct {
		other *claimBuilder
		same  bool
	}{
		"same":         {plain(), true},
		"count":        {claim("c").want("x", 3, "true"), true},
		"all":          {claim("c").wantAll("x", "true"), true},
		"alternative":  {claim("c").firstAvailable("x", sub("a", 1, "true")), true},
		"selectors":    {claim("c").want("x", 1), false},
		"class":        {plain().class("other"), false},
		"admin access": {plain().admin(), false},
		"capacity":     {plain().capacity("memory", "1"), false},
		"tolerations": {plain().edit(func(r *resourceapi.ExactDeviceRequest) {
			r.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{classes: []*resourceapi.DeviceClass{classOf("other")}, claims: []*claimBuilder{plain(), test.other}}.search(t)
			one, other := s.requests[0][0][0], s.requests[1][0][0]
			require.Equal(t, test.same, sameKind(one, other))
			require.Equal(t, test.same, one.group == other.group)
		})
	}
}
