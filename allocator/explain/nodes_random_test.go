// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

// reach describes the nodes that can use a device. Nodes 0 and 1 are in rack a, and node 2 is in rack b.
type reach struct {
	// kind is "node", "rack" or "all".
	kind string
	node int
	rack string
}

var rackOf = []string{"a", "a", "b"}

func drawReach(t *rapid.T) reach {
	return reach{rapid.SampledFrom([]string{"node", "rack", "rack", "all"}).Draw(t, "kind"), rapid.IntRange(0, 2).Draw(t, "node"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rack")}
}

// has reports whether a node can use the device. If ignored is true, node selectors don't matter.
func (r reach) has(node int, ignored bool) bool {
	return r.kind == "all" || r.kind == "node" && r.node == node || r.kind == "rack" && (ignored || r.rack == rackOf[node])
}

func (r reach) published() (nodeName *string, all *bool, selector *v1.NodeSelector) {
	switch r.kind {
	case "node":
		return new(fmt.Sprint("n", r.node)), nil, nil
	case "all":
		return nil, ptr.To(true), nil
	default:
		return nil, nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{r.rack}}}}}}
	}
}

// fabricDevice is a device that several nodes may be able to use.
type fabricDevice struct {
	reach
	x       int64
	tainted bool
	owner   int
}

// fabric is a random problem with three nodes and several pools. Several nodes can use the devices of some pools.
type fabric struct {
	pools []struct {
		// each is true if the slice selects nodes for each device (perDeviceNodeSelection).
		each    bool
		devices []fabricDevice
	}
	tolerates bool
	count     int64
	// most is the largest sum of x that the constraint allows, or -1 if there is no constraint.
	most int64
}

func drawFabric(t *rapid.T) *fabric {
	w := &fabric{tolerates: rapid.IntRange(0, 3).Draw(t, "tolerates of four") == 0, count: rapid.Int64Range(1, 3).Draw(t, "count"), most: rapid.Int64Range(-1, 3).Draw(t, "most")}
	w.pools = slices.Grow(w.pools, 3)[:rapid.IntRange(1, 3).Draw(t, "pools")]
	for i := range w.pools {
		p, common := &w.pools[i], drawReach(t)
		p.each = rapid.Bool().Draw(t, "each")
		for range rapid.IntRange(1, 3).Draw(t, "devices") {
			d := fabricDevice{common, rapid.Int64Range(0, 2).Draw(t, "x"), rapid.IntRange(0, 3).Draw(t, "tainted of four") == 0, rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "owner")}
			if p.each {
				d.reach = drawReach(t)
			}
			p.devices = append(p.devices, d)
		}
	}
	return w
}

func (w *fabric) all() (all []fabricDevice) {
	for _, p := range w.pools {
		all = append(all, p.devices...)
	}
	return all
}

// fits tries all sets on a node. It ignores the given kinds of causes and the claims that gone selects.
func (w *fabric) fits(node int, without sets.Set[string], gone func(owner int) bool) bool {
	var usable []int64
	for _, d := range w.all() {
		if d.has(node, without.Has(explain.CauseNodeSelector)) && (!d.tainted || w.tolerates || without.Has(explain.CauseTaint)) && (d.owner == 0 || gone(d.owner)) {
			usable = append(usable, d.x)
		}
	}
	// The sum is smallest for the devices with the smallest values.
	slices.Sort(usable)
	sum := int64(0)
	for i, x := range usable {
		if int64(i) < w.count {
			sum += x
		}
	}
	return int64(len(usable)) >= w.count && (w.most < 0 || sum <= w.most)
}

func (w *fabric) problem(t testing.TB) *explain.Problem {
	claim := wanting("c", w.count)
	if w.most >= 0 {
		claim = withConstraint(claim, "sum", fmt.Sprintf("devices.map(d, d.attributes['%s'].x).sum() <= %d", driver, w.most))
	}
	if w.tolerates {
		claim.Spec.Devices.Requests[0].Exactly.Tolerations = []resourceapi.DeviceToleration{{Key: "broken", Operator: resourceapi.DeviceTolerationOpExists}}
	}
	p := problem(t, topology.Topology{}, claim)
	p.Slices = nil
	p.Features, p.NamesAll = structured.Features{PartitionableDevices: true, DeviceTaints: true}, true
	owners := map[int]*resourceapi.ResourceClaim{}
	for i, pool := range w.pools {
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i)}}
		slice.Spec = resourceapi.ResourceSliceSpec{Driver: driver, Pool: resourceapi.ResourcePool{Name: fmt.Sprint("pool-", i), Generation: 1, ResourceSliceCount: 1}}
		if pool.each {
			slice.Spec.PerDeviceNodeSelection = ptr.To(true)
		} else {
			slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector = pool.devices[0].published()
		}
		for j, d := range pool.devices {
			device := resourceapi.Device{Name: fmt.Sprint("d", j), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"x": {IntValue: &d.x}}}
			if pool.each {
				device.NodeName, device.AllNodes, device.NodeSelector = d.published()
			}
			if d.tainted {
				device.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: []resourceapi.DeviceTaintEffect{resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNoSchedule}[j%2]}}
			}
			slice.Spec.Devices = append(slice.Spec.Devices, device)
			if d.owner == 0 {
				continue
			}
			if owners[d.owner] == nil {
				owners[d.owner] = owning(fmt.Sprint("owner-", d.owner))
				p.Allocated = append(p.Allocated, owners[d.owner])
			}
			of := &owners[d.owner].Status.Allocation.Devices
			of.Results = append(of.Results, resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: slice.Spec.Pool.Name, Device: device.Name})
		}
		p.Slices = append(p.Slices, slice)
	}
	return p
}

// TestDevicesOfSeveralNodes checks that a node counts a shared device once, and that causes and claims in the way concern only
// the explained node. A device with a taint that is not tolerated never counts as free.
func TestDevicesOfSeveralNodes(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(300, 5_000), func(rt *rapid.T) {
		w := drawFabric(rt)
		for i, rack := range rackOf {
			e, err := w.problem(t).Node(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"rack": rack}}})
			require.NoError(rt, err)
			seen[w.requireExplained(rt, i, e)]++
		}
	})
	t.Log(seen)
	require.Len(t, seen, 5, "the generator has lost a case: %v", seen)
}

func (w *fabric) requireExplained(t *rapid.T, node int, e *explain.Explanation) string {
	w.requireCounts(t, node, e)
	none, all := func(int) bool { return false }, func(int) bool { return true }
	require.Equal(t, w.fits(node, nil, none), e.Fits, e)
	if e.Fits {
		return "fits"
	}
	named, alone := sets.New[string](), sets.New[string]()
	for _, cause := range e.Causes {
		named.Insert(cause.Kind)
	}
	require.Len(t, e.Causes, len(named), e)
	for _, kind := range []string{explain.CauseTaint, explain.CauseNodeSelector} {
		if w.fits(node, sets.New(kind), none) && (kind != explain.CauseNodeSelector || e.Requests[0].Matching == 0) {
			alone.Insert(kind)
		}
	}
	inTheWay := func(owner int) bool {
		return slices.ContainsFunc(e.InTheWay, func(o explain.Owner) bool { return o.Claim == fmt.Sprint("default/owner-", owner) })
	}
	every := sets.New(explain.CauseTaint)
	if e.Requests[0].Matching == 0 {
		every.Insert(explain.CauseNodeSelector)
	}
	which := "alone"
	switch {
	case len(alone) > 0:
		require.Equal(t, alone, named, e)
	case w.fits(node, nil, all):
		which = "in the way"
		require.Empty(t, named, e)
		require.True(t, w.fits(node, nil, inTheWay), e)
	case w.fits(node, every, all):
		which = "together"
		require.True(t, w.fits(node, named, inTheWay), e)
		for kind := range named {
			require.False(t, w.fits(node, named.Difference(sets.New(kind)), all), "%s need not be named: %s", kind, e)
		}
	default:
		which = "never"
		require.Empty(t, named, e)
	}
	require.Equal(t, which == "never", e.Never, e)
	w.requireInTheWay(t, node, e, len(alone) == 0, func(but string) bool {
		return w.fits(node, named, func(owner int) bool { return inTheWay(owner) && but != fmt.Sprint("default/owner-", owner) })
	})
	return which
}

// requireCounts checks the numbers of matching, unusable and free devices in an explanation.
func (w *fabric) requireCounts(t *rapid.T, node int, e *explain.Explanation) {
	matching, unusable, free := 0, 0, 0
	for _, d := range w.all() {
		switch {
		case !d.has(node, false):
			continue
		case d.tainted && !w.tolerates:
			unusable++
		case d.owner == 0:
			free++
		}
		matching++
	}
	require.Equal(t, []int{matching, unusable, free}, []int{e.Requests[0].Matching, e.Requests[0].Unusable, e.Requests[0].Free}, e)
}

// requireInTheWay checks that each reported claim has devices of the node, is reported once, and can't be left out. fits(but)
// reports whether the new claims fit if every reported claim except but gives back its devices.
func (w *fabric) requireInTheWay(t *rapid.T, node int, e *explain.Explanation, minimal bool, fits func(but string) bool) {
	ofNode := sets.New[string]()
	for i, pool := range w.pools {
		for j, d := range pool.devices {
			if d.owner > 0 && d.has(node, e.Requests[0].Matching == 0) {
				ofNode.Insert(fmt.Sprintf("default/owner-%d %s/pool-%d/d%d", d.owner, driver, i, j))
			}
		}
	}
	claims := sets.New[string]()
	for _, owner := range e.InTheWay {
		require.False(t, claims.Has(owner.Claim), e)
		claims.Insert(owner.Claim)
		devices := sets.New[string]()
		for _, device := range owner.Devices {
			require.False(t, devices.Has(device), e)
			devices.Insert(device)
			require.True(t, ofNode.Has(owner.Claim+" "+device), "%s is not in use on node %d: %s\n%+v", device, node, e, w)
		}
		require.NotEmpty(t, devices, e)
		require.False(t, minimal && fits(owner.Claim), "%s need not be named: %s", owner.Claim, e)
	}
}

// TestSharesOfOneDevice checks that a claim with several shares of a device is reported with this device once.
func TestSharesOfOneDevice(t *testing.T) {
	const memory = "memory"
	claim := wanting("c", 1)
	claim.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{memory: resource.MustParse("10")}}
	p := problem(t, ring(t, 3), claim)
	p.NamesAll, p.Features.ConsumableCapacity = true, true
	first := &p.Slices[0].Spec.Devices[0]
	first.AllowMultipleAllocations = ptr.To(true)
	first.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{memory: {Value: resource.MustParse("16")}}
	two := owning("two", 0, 0)
	for i := range two.Status.Allocation.Devices.Results {
		result := &two.Status.Allocation.Devices.Results[i]
		result.ShareID = ptr.To(types.UID(fmt.Sprintf("6f0a1ab6-6c2a-4b1e-8a61-0b6a9a4f0c%02d", i)))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{memory: resource.MustParse("5")}
	}
	p.Allocated = []*resourceapi.ResourceClaim{two}
	e, err := p.Node(t.Context(), node)
	require.NoError(t, err)
	require.Len(t, e.InTheWay, 1, e)
	require.Len(t, e.InTheWay[0].Devices, 1, e)
}
