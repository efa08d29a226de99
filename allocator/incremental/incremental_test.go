// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package incremental_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/incremental"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

const manyUnits = 1 << 40

type noClasses struct{}

func (noClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// claimOf returns a claim with a constraint for the named requests or alternatives, and with a request that isn't covered.
func claimOf(expression string, requests ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{}
	claim.Name = "claim"
	var covered []string
	for _, name := range append(requests, "others") {
		r := resourceapi.DeviceRequest{Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}}
		var alternative string
		if r.Name, alternative, _ = strings.Cut(name, "/"); alternative != "" {
			r.Exactly, r.FirstAvailable = nil, []resourceapi.DeviceSubRequest{{Name: alternative, DeviceClassName: "gpu.example.com"}}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, r)
		covered = append(covered, r.Name)
	}
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{Requests: covered[:len(requests)], MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/set"))}}
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     "celset.dev",
		Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "set", "expression": %q}`, expression)},
	}}}}
	return claim
}

func constraintOf(t require.TestingT, expression string, requests ...string) (*incremental.Constraint, error) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	all, err := incremental.Constraints(context.Background(), environment, claimOf(expression, requests...), noClasses{})
	if err != nil {
		return nil, err
	}
	require.Len(t, all, 1)
	return all[0], nil
}

// testedConstraint holds the methods that search calls. Both [incremental.Set] and exhaustive implement it.
type testedConstraint interface {
	Add(request string, device int) bool
	Remove(request string, device int)
	Err() error
}

// search takes devices in order, as a simple allocator does. It returns the first complete set, and the number of calls of Add.
func search(s testedConstraint, requests []incremental.Request, devices int) (found [][]int, asked int) {
	found = make([][]int, len(requests))
	var visit func(request, from int) bool
	visit = func(request, from int) bool {
		for request < len(requests) && len(found[request]) == requests[request].Count {
			request, from = request+1, 0
		}
		if request == len(requests) {
			return true
		}
		for i := from; i < devices; i++ {
			if slices.ContainsFunc(found, func(set []int) bool { return slices.Contains(set, i) }) {
				continue
			}
			asked++
			if !s.Add(requests[request].Name, i) {
				if s.Err() != nil {
					return false
				}
				continue
			}
			found[request] = append(found[request], i)
			if visit(request, i+1) {
				return true
			}
			found[request] = found[request][:len(found[request])-1]
			s.Remove(requests[request].Name, i)
			if s.Err() != nil {
				return false
			}
		}
		return false
	}
	if !visit(0, 0) {
		found = nil
	}
	return found, asked
}

// exhaustive is a testedConstraint that evaluates only complete sets.
type exhaustive struct {
	expression *device.Expression
	requests   []incremental.Request
	devices    []*device.Device
	members    map[string][]int
	err        error
}

func (e *exhaustive) Add(request string, position int) bool {
	e.members[request] = append(e.members[request], position)
	var set []*device.Device
	for _, r := range e.requests {
		if len(e.members[r.Name]) < r.Count {
			return true
		}
		for _, i := range e.members[r.Name] {
			set = append(set, e.devices[i])
		}
	}
	ok, err := e.expression.Satisfied(context.Background(), set, cel.NewBudget(manyUnits))
	if e.err = err; !ok {
		e.Remove(request, position)
	}
	return ok
}

func (e *exhaustive) Remove(request string, _ int) {
	e.members[request] = e.members[request][:len(e.members[request])-1]
}

func (e *exhaustive) Err() error { return e.err }

var attributes = randomexpr.Attributes{Domain: "d", Ints: []string{"x", "y"}, String: "s", Strings: "list"}

func drawDevices(t *rapid.T, n int) (all []incremental.Device) {
	letters := rapid.SampledFrom([]string{"a", "b", "c"})
	for i := range n {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"y": {IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "y"))}, "s": {StringValue: ptr.To(letters.Draw(t, "s"))},
			"list": {StringValues: rapid.SliceOfN(letters, 1, 2).Draw(t, "list")},
		}}
		if rapid.IntRange(0, 9).Draw(t, "has x") > 0 {
			d.Attributes["x"] = resourceapi.DeviceAttribute{IntValue: ptr.To(rapid.Int64Range(0, 4).Draw(t, "x"))}
		}
		all = append(all, incremental.Device{Driver: "d", Device: d})
	}
	return all
}

// TestSameAsExhaustive checks that a search with a Set has the same result as a search that evaluates only complete sets.
func TestSameAsExhaustive(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	found, none, failures, fewer := 0, 0, 0, 0
	cases.CheckN(t, cases.Of(1500, 20_000), func(t *rapid.T) {
		text := randomexpr.Condition(t, attributes)
		expression, err := environment.Compile(t.Context(), text)
		if err != nil {
			return
		}
		devices := drawDevices(t, rapid.IntRange(2, 7).Draw(t, "devices"))
		names := []string{"one", "two"}[:rapid.IntRange(1, 2).Draw(t, "requests")]
		c, err := constraintOf(t, text, names...)
		require.NoError(t, err)
		var requests []incremental.Request
		for _, name := range names {
			requests = append(requests, incremental.Request{Name: name, Count: rapid.IntRange(1, 3).Draw(t, "count")})
		}
		all := &exhaustive{expression: expression, requests: requests, members: map[string][]int{}}
		for _, d := range devices {
			all.devices = append(all.devices, device.New(d.Driver, d.Device))
		}
		set := c.Over(t.Context(), devices, requests, cel.NewBudget(manyUnits))
		for range 2 {
			all.err, all.members = nil, map[string][]int{}
			want, most := search(all, requests, len(devices))
			got, asked := search(set, requests, len(devices))
			require.Equal(t, want, got, text)
			require.Equal(t, all.err == nil, set.Err() == nil, "%v %v", all.err, set.Err())
			if asked < most {
				fewer++
			}
			switch {
			case all.err != nil:
				failures++
				require.ErrorContains(t, set.Err(), all.err.Error())
			case want == nil:
				none++
			default:
				found++
			}
			set.Reset()
		}
	})
	t.Logf("%d sets, %d times none, %d failures, fewer questions in %d", found, none, failures, fewer)
	for _, count := range []int{found, none, failures, fewer} {
		require.Greater(t, count, 50)
	}
}

// TestSet checks the methods and cases of a Set that the other tests don't check.
func TestSet(t *testing.T) {
	var devices []incremental.Device
	for i := range int64(6) {
		devices = append(devices, incremental.Device{Driver: "d", Device: &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"x": {IntValue: &i}}}})
	}
	c, err := constraintOf(t, "devices.map(d, d.attributes['d'].x).sum() == 8 && devices[0].attributes['d'].x == 5", "gpus/small", "nics")
	require.NoError(t, err)
	for request, covered := range map[string]bool{"gpus": true, "gpus/small": true, "gpu": false, "gpusmall": false, "": false} {
		require.Equal(t, covered, c.Covers(request), request)
	}
	s := c.Over(t.Context(), devices, []incremental.Request{{Name: "gpus/small", Count: 2}, {Name: "others", Count: 9}, {Name: "nics", Count: 1}}, cel.NewBudget(manyUnits))
	require.True(t, s.Add("others", 77), "it is about others")
	s.Remove("others", 77)
	require.False(t, s.Add("gpus/small", 6), "there is no such device")
	require.False(t, s.Add("gpus", 1), "another alternative is tried")
	require.True(t, s.Add("nics", 1), "requests in any order")
	require.False(t, s.Add("nics", 2), "it has its device")
	require.False(t, s.Add("gpus/small", 1), "the device is there")
	require.True(t, s.Add("gpus/small", 5))
	require.False(t, s.Add("gpus/small", 3))
	require.True(t, s.Add("gpus/small", 2))
	s.Remove("gpus/small", 5)
	require.False(t, s.Add("gpus/small", 5), "it would not be the first")
	s.Remove("gpus/small", 4)
	s.Reset()
	require.True(t, s.Add("gpus/small", 5))
	require.NoError(t, s.Err())
	require.False(t, s.Add("gpus/small", 4), "nothing would make it 8")

	_, err = constraintOf(t, "devices.all(d,")
	require.ErrorContains(t, err, "claim claim, constraint set")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	c, err = constraintOf(t, "devices.exists(d, d.attributes['d'].x == 1)", "gpus")
	require.NoError(t, err)
	s = c.Over(ended, devices, []incremental.Request{{Name: "gpus", Count: 1}}, cel.NewBudget(manyUnits))
	require.False(t, s.Add("gpus", 1))
	require.ErrorContains(t, s.Err(), "enough")
	s = c.Over(t.Context(), devices, []incremental.Request{{Name: "gpus", Count: 1}}, cel.NewBudget(1))
	require.False(t, s.Add("gpus", 1))
	require.ErrorContains(t, s.Err(), "budget")
	require.False(t, s.Add("gpus", 5), "the search is to end")
}

// TestSharedDevices checks that several requests can get a device that allows multiple allocations.
func TestSharedDevices(t *testing.T) {
	c, err := constraintOf(t, "devices[0] == devices[1]", "a", "b")
	require.NoError(t, err)
	shared := incremental.Device{Driver: "d", Device: &resourceapi.Device{Name: "shared", AllowMultipleAllocations: ptr.To(true)}}
	s := c.Over(t.Context(), []incremental.Device{{Driver: "d", Device: &resourceapi.Device{Name: "other"}}, shared}, []incremental.Request{{Name: "a", Count: 1}, {Name: "b", Count: 1}}, cel.NewBudget(manyUnits))
	require.True(t, s.Add("a", 1))
	require.False(t, s.Add("b", 0))
	require.True(t, s.Add("b", 1))
	s.Remove("a", 1)
	require.True(t, s.Add("a", 1))
}

// BenchmarkBox searches for a block of 3x4 devices among 8x8 devices. The four devices in the middle are missing.
func BenchmarkBox(b *testing.B) {
	var devices []incremental.Device
	for i := range int64(64) {
		x, y := i%8, i/8
		if (x == 3 || x == 4) && (y == 3 || y == 4) {
			continue
		}
		devices = append(devices, incremental.Device{Driver: "d", Device: &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"x": {IntValue: &x}, "y": {IntValue: &y}}}})
	}
	c, err := constraintOf(b, "devices.box(d, [d.attributes['d'].x, d.attributes['d'].y], [3, 4], [8, 8])", "chips")
	require.NoError(b, err)
	requests := []incremental.Request{{Name: "chips", Count: 12}}
	for b.Loop() {
		found, asked := search(c.Over(b.Context(), devices, requests, cel.NewBudget(manyUnits)), requests, len(devices))
		require.NotNil(b, found)
		b.ReportMetric(float64(asked), "devices/search")
	}
}
