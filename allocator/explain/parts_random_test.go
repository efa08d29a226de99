// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/internal/testing/cases"
)

// clusterDrawer draws a random cluster: pools of two drivers with equal names, several slices, old generations, devices of one or
// several nodes, taints, counters and shares; and claims of two namespaces with devices of several pools, or with admin access.
type clusterDrawer struct {
	*rapid.T
	slices []*resourceapi.ResourceSlice
	owners map[int]*resourceapi.ResourceClaim
}

func (c *clusterDrawer) oneOf(n int, label string) bool {
	return rapid.IntRange(1, n).Draw(c.T, label) == n
}

var clusterDrivers = []string{driver, "b." + driver}

func (c *clusterDrawer) drawPool(name string) {
	of, each := rapid.SampledFrom(clusterDrivers).Draw(c.T, "driver"), c.oneOf(4, "each")
	generation, count := rapid.Int64Range(1, 2).Draw(c.T, "generation"), rapid.IntRange(1, 2).Draw(c.T, "slices")
	published := count
	if c.oneOf(8, "incomplete") {
		count++
	}
	common, counters := drawReach(c.T), c.oneOf(3, "counters")
	newSlice := func() *resourceapi.ResourceSlice {
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(of, "-", name, "-", len(c.slices))}}
		slice.Spec = resourceapi.ResourceSliceSpec{Driver: of, Pool: resourceapi.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: int64(count)}}
		if each {
			slice.Spec.PerDeviceNodeSelection = ptr.To(true)
		} else {
			slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector = common.published()
		}
		c.slices = append(c.slices, slice)
		return slice
	}
	if counters {
		count++
		newSlice().Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: *resource.NewQuantity(3, resource.DecimalSI)}}}}
	}
	for i := range published {
		slice := newSlice()
		if c.oneOf(10, "old") {
			slice.Spec.Pool.Generation--
		}
		for j := range rapid.IntRange(1, 3).Draw(c.T, "devices") {
			c.drawDevice(slice, fmt.Sprintf("d-%d-%d", i, j), each, counters)
		}
	}
}

func (c *clusterDrawer) drawDevice(slice *resourceapi.ResourceSlice, name string, each, counters bool) {
	device := resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{driver + "/x": {IntValue: new(rapid.Int64Range(0, 2).Draw(c.T, "x"))}}}
	if each {
		device.NodeName, device.AllNodes, device.NodeSelector = drawReach(c.T).published()
	}
	if c.oneOf(4, "tainted") {
		device.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	}
	if counters && c.oneOf(2, "consumes") {
		device.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: *resource.NewQuantity(rapid.Int64Range(1, 3).Draw(c.T, "consumed"), resource.DecimalSI)}}}}
	}
	shared := c.oneOf(4, "shared")
	if shared {
		device.AllowMultipleAllocations, device.Capacity = ptr.To(true), map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("16")}}
	}
	slice.Spec.Devices = append(slice.Spec.Devices, device)
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(c.T, "owners") {
		owner := rapid.IntRange(1, 4).Draw(c.T, "owner")
		result := resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: name}
		if c.oneOf(6, "admin") {
			result.AdminAccess = ptr.To(true)
		} else if shared {
			result.ShareID = ptr.To(types.UID(fmt.Sprintf("6f0a1ab6-6c2a-4b1e-8a61-%012d", len(c.slices)*1000+owner)))
			result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("10")}
		}
		if c.owners[owner] == nil {
			c.owners[owner] = owning(fmt.Sprint("owner-", owner))
			c.owners[owner].Namespace = []string{"default", "other"}[owner%2]
		}
		of := &c.owners[owner].Status.Allocation.Devices
		of.Results = append(of.Results, result)
	}
}

// drawCluster returns a function that makes the problem of a random cluster, each time with a new cache.
func drawCluster(t *rapid.T) func() *explain.Problem {
	c := &clusterDrawer{T: t, owners: map[int]*resourceapi.ResourceClaim{}}
	for range rapid.IntRange(1, 6).Draw(t, "pools") {
		c.drawPool(rapid.SampledFrom([]string{"n0", "n1", "shared", "fabric"}).Draw(t, "pool"))
	}
	listed := rapid.Permutation(c.slices).Draw(t, "order")
	allocated := []*resourceapi.ResourceClaim{wanting("waiting", 1)}
	for i := range 5 {
		if c.owners[i] != nil {
			allocated = append(allocated, c.owners[i])
		}
	}
	allocated = rapid.Permutation(allocated).Draw(t, "claims")
	var claims []*resourceapi.ResourceClaim
	for i := range rapid.IntRange(1, 2).Draw(t, "new claims") {
		claim := wanting(fmt.Sprint("new-", i), rapid.Int64Range(1, 3).Draw(t, "count"))
		request := claim.Spec.Devices.Requests[0].Exactly
		request.DeviceClassName = rapid.SampledFrom([]string{driver, driver, "any"}).Draw(t, "class")
		if c.oneOf(3, "limited") {
			claim = withConstraint(claim, "sum", fmt.Sprintf("devices.map(d, d.attributes['%s'].x).sum() <= %d && devices.size() > 0", driver, rapid.Int64Range(0, 3).Draw(t, "most")))
		}
		if c.oneOf(4, "asks") {
			request.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("8")}}
		}
		if c.oneOf(8, "with admin access") {
			request.AdminAccess = ptr.To(true)
		}
		claims = append(claims, claim)
	}
	features := structured.Features{
		AdminAccess: true, ConsumableCapacity: !c.oneOf(8, "capacity off"), DeviceTaints: !c.oneOf(8, "taints off"), PartitionableDevices: !c.oneOf(8, "partitions off"),
	}
	namesAll, steps := rapid.Bool().Draw(t, "names all"), rapid.SampledFrom([]int64{2, 100_000, 100_000, 100_000}).Draw(t, "steps")
	lister := classes{driver: {ObjectMeta: metav1.ObjectMeta{Name: driver}}, "any": {ObjectMeta: metav1.ObjectMeta{Name: "any"}}}
	lister[driver].Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}
	return func() *explain.Problem {
		return &explain.Problem{NamesAll: namesAll, Problem: allocator.Problem{
			Claims: claims, Allocated: allocated, Classes: lister, Slices: listed, Features: features, Selectors: dracel.NewCache(10, dracel.Features{}),
			Options: []allocator.Option{allocator.WithCache(allocator.NewCache()), allocator.WithStepBudget(steps)},
		}}
	}
}

// TestPartsOfNodes checks that the explanations of all nodes after Ready are the same as with a pass over all slices and claims
// for each node: the same parts of the problem, the same data and the same text.
func TestPartsOfNodes(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(300, 10_000), func(rt *rapid.T) {
		newProblem := drawCluster(rt)
		indexed, scanned := newProblem(), newProblem()
		require.NoError(rt, indexed.Ready(t.Context()))
		require.NoError(rt, scanned.Ready(t.Context()))
		explain.WithoutParts(scanned)
		for i, name := range []string{"n0", "n1", "n2", "n3", ""} {
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": []string{"a", "a", "b", "c", "a"}[i]}}}
			for _, elsewhere := range []bool{false, true} {
				want, err := explain.OnNode(scanned, node, elsewhere)
				require.NoError(rt, err)
				has, err := explain.OnNode(indexed, node, elsewhere)
				require.NoError(rt, err)
				require.Equal(rt, append([]*resourceapi.ResourceSlice{}, want.Slices...), append([]*resourceapi.ResourceSlice{}, has.Slices...))
				require.Equal(rt, append([]*resourceapi.ResourceClaim{}, want.Allocated...), append([]*resourceapi.ResourceClaim{}, has.Allocated...))
			}
			want, wantErr := scanned.Node(t.Context(), node)
			has, err := indexed.Node(t.Context(), node)
			require.Equal(rt, fmt.Sprint(wantErr), fmt.Sprint(err))
			require.Equal(rt, textOf(rt, want), textOf(rt, has))
			count(seen, has, err)
		}
	})
	t.Log(seen)
	for _, kind := range []string{"fits", "never", "unmet", "in the way", "others in the way", "error", explain.CauseNodeSelector, explain.CauseTaint, explain.CauseCapacity, explain.CauseCounters, explain.CauseFeature, explain.CausePool} {
		require.Positive(t, seen[kind], "the generator has lost a case: %s of %v", kind, seen)
	}
}

// textOf returns an explanation as data and as text.
func textOf(t *rapid.T, e *explain.Explanation) string {
	if e == nil {
		return ""
	}
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	return string(raw) + "\n" + e.String()
}

// count counts the kinds of obstacles in an explanation.
func count(seen map[string]int, e *explain.Explanation, err error) {
	if err != nil {
		seen["error"]++
	}
	if e == nil {
		return
	}
	for kind, is := range map[string]bool{"fits": e.Fits, "never": e.Never, "unmet": e.Unmet != nil, "in the way": len(e.InTheWay) > 0, "others in the way": e.OthersInTheWay != nil} {
		if is {
			seen[kind]++
		}
	}
	for _, cause := range e.Causes {
		seen[cause.Kind]++
	}
}
