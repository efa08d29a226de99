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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

// worldDevice is a device in a world.
type worldDevice struct {
	tainted, binds, shared bool
	consumes               int64
	owner                  int
}

// world is a random node with two pools. Each kind of cause may prevent the allocation of its devices.
type world struct {
	pools [2]struct {
		things                        []worldDevice
		missing, duplicate, elsewhere bool
		slots                         int64
	}
	gateOff bool
	count   int64
	asks    int64
}

func drawWorld(t *rapid.T) (w world) {
	rarely := rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 5).Draw(t, "of six") == 0 })
	w.gateOff, w.count, w.asks = rarely.Draw(t, "gate off"), rapid.Int64Range(1, 3).Draw(t, "count"), rapid.SampledFrom([]int64{0, 0, 8, 24}).Draw(t, "asks")
	for i := range w.pools {
		p := &w.pools[i]
		p.missing, p.duplicate, p.elsewhere = rarely.Draw(t, "missing"), rarely.Draw(t, "duplicate"), rarely.Draw(t, "elsewhere")
		p.slots = rapid.Int64Range(3, 6).Draw(t, "slots")
		consumed := int64(0)
		for range rapid.IntRange(1, 3).Draw(t, "devices") {
			d := worldDevice{
				tainted: rarely.Draw(t, "tainted"), binds: rarely.Draw(t, "binds"), shared: w.asks > 0,
				consumes: rapid.SampledFrom([]int64{0, 0, 1, 2, 3}).Draw(t, "consumes"), owner: rapid.IntRange(0, 3).Draw(t, "owner"),
			}
			if d.owner > 0 && consumed+d.consumes > p.slots {
				d.owner = 0 // only allocated devices are in use
			} else if d.owner > 0 {
				consumed += d.consumes
			}
			p.things = append(p.things, d)
		}
	}
	return w
}

// problem returns the problem of the world without the causes of the given kinds and without the claims that gone selects.
func (w *world) problem(t testing.TB, without sets.Set[string], gone func(claim string) bool) *explain.Problem {
	claim := wanting("c", w.count)
	p := problem(t, topology.Topology{}, claim)
	p.Slices = nil
	p.Features = structured.Features{ConsumableCapacity: true, DeviceBindingAndStatus: !w.gateOff || without.Has(explain.CauseFeature), DeviceTaints: true, PartitionableDevices: true}
	if asks := w.asks; asks > 0 {
		if without.Has(explain.CauseCapacity) {
			asks = 0
		}
		claim.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(asks, resource.DecimalSI)}}
	}
	owners := map[int]*resourceapi.ResourceClaim{}
	for i := range w.pools {
		pool, name := &w.pools[i], fmt.Sprint("pool-", i)
		spec := resourceapi.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(node.Name), Pool: resourceapi.ResourcePool{Name: name, Generation: 3, ResourceSliceCount: 2}}
		if pool.elsewhere {
			spec.NodeName, spec.AllNodes = nil, ptr.To(true)
			if !without.Has(explain.CauseNodeSelector) {
				spec.AllNodes, spec.NodeSelector = nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}}}
			}
		}
		if pool.missing && !without.Has(explain.CausePool) {
			spec.Pool.ResourceSliceCount = 3
		}
		counters := spec
		counters.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: *resource.NewQuantity(pool.slots, resource.DecimalSI)}}}}
		for j, d := range pool.things {
			device := resourceapi.Device{Name: fmt.Sprint("device-", j)}
			if d.tainted && !without.Has(explain.CauseTaint) {
				device.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoExecute}}
			}
			if d.binds {
				device.BindingConditions, device.BindingFailureConditions = []string{"ready"}, []string{"failed"}
			}
			if d.consumes > 0 && !without.Has(explain.CauseCounters) {
				device.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: *resource.NewQuantity(d.consumes, resource.DecimalSI)}}}}
			}
			if d.shared {
				device.AllowMultipleAllocations, device.Capacity = ptr.To(true), map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("16")}}
			}
			spec.Devices = append(spec.Devices, device)
			if owner := fmt.Sprint("owner-", d.owner); d.owner > 0 && !gone("default/"+owner) {
				if owners[d.owner] == nil {
					owners[d.owner] = owning(owner)
					p.Allocated = append(p.Allocated, owners[d.owner])
				}
				result := resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: name, Device: device.Name}
				if d.shared {
					result.ShareID, result.ConsumedCapacity = ptr.To(types.UID(fmt.Sprintf("6f0a1ab6-6c2a-4b1e-8a61-0b6a9a4f0c%d%d", i, j))), map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("10")}
				}
				owners[d.owner].Status.Allocation.Devices.Results = append(owners[d.owner].Status.Allocation.Devices.Results, result)
			}
		}
		if pool.duplicate && !without.Has(explain.CausePool) {
			spec.Devices = append(spec.Devices, spec.Devices[0])
		}
		p.Slices = append(p.Slices, &resourceapi.ResourceSlice{Spec: spec}, &resourceapi.ResourceSlice{Spec: counters})
		p.Slices[2*i].Name, p.Slices[2*i+1].Name = name+"-devices", name+"-counters"
	}
	return p
}

// TestCausesAreTrue removes causes from a world and checks whether the claims then fit. The results must agree with the
// reported causes.
func TestCausesAreTrue(t *testing.T) {
	seen := map[string]int{}
	cases.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		none := func(string) bool { return false }
		fits := func(without sets.Set[string], gone func(string) bool) bool {
			e, err := w.problem(t, without, gone).Ask(t.Context(), node)
			require.NoError(rt, err)
			return e.Fits
		}
		all := func(string) bool { return true }
		e, err := w.problem(t, nil, none).Node(t.Context(), node)
		require.NoError(rt, err)
		if e.Fits {
			require.Empty(rt, e.Causes)
			return
		}
		named, text := sets.New[string](), e.String()
		for _, cause := range e.Causes {
			named.Insert(cause.Kind)
			require.Contains(rt, text, cause.Message)
			require.NotRegexp(rt, `: $|%!|pool  `, cause.Message)
		}
		require.Len(rt, e.Causes, len(named))
		inTheWay := func(claim string) bool {
			return slices.ContainsFunc(e.InTheWay, func(o explain.Owner) bool { return o.Claim == claim })
		}
		alone := sets.New[string]()
		for _, kind := range explain.CauseKinds() {
			if fits(sets.New(kind), none) {
				alone.Insert(kind)
			}
		}
		if e.Requests[0].Matching > 0 {
			alone.Delete(explain.CauseNodeSelector)
		}
		switch everything := sets.New(explain.CauseFeature, explain.CausePool, explain.CauseTaint, explain.CauseCapacity, explain.CauseCounters); {
		case len(alone) > 0:
			seen["alone"]++
			require.Equal(rt, alone, named)
		case fits(nil, all):
			seen["in the way"]++
			require.Empty(rt, named)
			require.True(rt, fits(nil, inTheWay))
		case len(named) > 1 || len(named) == 1 && fits(named, all):
			seen["together"]++
			require.True(rt, fits(named, inTheWay))
			for kind := range named {
				require.False(rt, fits(named.Difference(sets.New(kind)), all), "%s need not be named", kind)
			}
		default:
			seen["never"]++
			require.False(rt, fits(everything, all))
			require.Equal(rt, len(named) == 0, e.Never)
		}
		for i, o := range e.InTheWay {
			require.False(rt, len(alone) == 0 && fits(named, func(claim string) bool { return claim != o.Claim && inTheWay(claim) }), "%s need not be named", e.InTheWay[i].Claim)
		}
		for kind := range named {
			seen[kind]++
		}
	})
	t.Log(seen)
	require.Len(t, seen, 10, "the generator has lost a case: %v", seen)
}

// TestCausesInWords checks the message of each kind of cause, on a node with two pools.
func TestCausesInWords(t *testing.T) {
	seen := sets.New[string]()
	for want, change := range map[string]func(*world){
		"devices that match have taints that the claims don't tolerate: broken=:NoExecute":             func(w *world) { w.pools[0].things[0].tainted = true },
		"pool mla.example.com/pool-0 is incomplete: 2 of 3 ResourceSlices of generation 3 can be used": func(w *world) { w.pools[0].missing = true },
		"pool mla.example.com/pool-0 is invalid: duplicate device name device-0":                       func(w *world) { w.pools[0].duplicate = true },
		"the node selector of devices in pool mla.example.com/pool-0 does not match the node":          func(w *world) { w.pools[0].elsewhere = true },
		"devices need feature gates that are off: DRADeviceBindingConditions with DRAResourceClaimDeviceStatus": func(w *world) {
			w.gateOff, w.pools[0].things[0].binds = true, true
		},
		"too much capacity is requested: 24 of memory, but device device-0 has 16, of which 16 is free": func(w *world) {
			w.asks, w.pools[0].things[0].shared = 24, true
		},
		"not enough counters are free: counter slots of counter set card of pool mla.example.com/pool-0: 7 needed, 6 in total": func(w *world) {
			w.pools[0].things[0].consumes = 7
		},
	} {
		w := world{count: 1}
		w.pools[0].slots, w.pools[1].slots = 6, 6
		w.pools[0].things = []worldDevice{{}}
		change(&w)
		e, err := w.problem(t, nil, func(string) bool { return false }).Node(t.Context(), node)
		require.NoError(t, err)
		require.Equal(t, want, e.Causes[0].Message, e.String())
		seen.Insert(e.Causes[0].Kind)
	}
	require.Equal(t, sets.New(explain.CauseKinds()...), seen)
}

// TestTaintRulesAreNamed checks that a cause names the DeviceTaintRule that adds a taint. If several rules add the taint, the
// cause names the first rule by name, regardless of the order of the rules. A rule that does not select the device is not
// named.
func TestTaintRulesAreNamed(t *testing.T) {
	rule := func(name, key string, selector *compat.DeviceTaintSelector) *compat.DeviceTaintRule {
		rule := &compat.DeviceTaintRule{}
		rule.Name, rule.Spec.DeviceSelector, rule.Spec.Taint.Key, rule.Spec.Taint.Effect = name, selector, key, "NoExecute"
		return rule
	}
	rules := []*compat.DeviceTaintRule{
		rule("a-without-selector", "broken", nil),
		rule("b-of-another-device", "broken", &compat.DeviceTaintSelector{Device: ptr.To("device-1")}),
		rule("c-of-another-taint", "hot", &compat.DeviceTaintSelector{}),
		rule("d-of-the-pool", "broken", &compat.DeviceTaintSelector{Pool: ptr.To("pool-0")}),
		rule("e-of-all-devices", "broken", &compat.DeviceTaintSelector{}),
	}
	w := world{count: 1}
	w.pools[0].things = []worldDevice{{tainted: true}}
	for range 2 {
		p := w.problem(t, nil, func(string) bool { return false })
		p.TaintRules = rules
		e, err := p.Node(t.Context(), node)
		require.NoError(t, err)
		require.Equal(t, "devices that match have taints that the claims don't tolerate: broken=:NoExecute of DeviceTaintRule d-of-the-pool", e.Causes[0].Message)
		slices.Reverse(rules)
	}
}

// The work for explaining a node does not grow with the cluster. An explanation ignores slices of other nodes, and claims with
// devices of other nodes. It examines a limited number of slices whose node selectors don't match the node.
func TestExplanationsLookAtOneNode(t *testing.T) {
	w := world{count: 1}
	w.pools[0].things, w.pools[1].things = []worldDevice{{owner: 1}}, []worldDevice{{owner: 1}}
	p := w.problem(t, nil, func(string) bool { return false })
	for i := range 1000 {
		other := p.Slices[0].DeepCopy()
		other.Name, other.Spec.Pool = fmt.Sprint("other-", i), resourceapi.ResourcePool{Name: fmt.Sprint("other-", i), ResourceSliceCount: 1}
		other.Spec.NodeName, other.Spec.NodeSelector = nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}}}
		claim := owning(fmt.Sprint("else-", i), 0)
		claim.Status.Allocation.Devices.Results[0].Pool, claim.Status.Allocation.Devices.Results[0].Device = other.Name, "device-0"
		p.Slices, p.Allocated = append(p.Slices, other), append(p.Allocated, claim)
	}
	ready := *p
	require.NoError(t, ready.Ready(t.Context()))
	for elsewhere, want := range map[bool]int{false: 4, true: 4 + 128} {
		on, err := explain.OnNode(p, node, elsewhere)
		require.NoError(t, err)
		require.Len(t, on.Slices, want)
		require.Len(t, on.Allocated, want-3)
		same, err := explain.OnNode(&ready, node, elsewhere)
		require.NoError(t, err)
		require.Equal(t, on.Slices, same.Slices)
		require.Equal(t, on.Allocated, same.Allocated)
	}
	e, err := p.Node(t.Context(), node)
	require.NoError(t, err)
	require.Equal(t, []string{"default/owner-1"}, []string{e.InTheWay[0].Claim})
}
