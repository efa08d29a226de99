// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/compat"
	celcompat "github.com/celset/celset/cel/compat"
)

// gate is a feature gate with the condition under which devices need it.
type gate struct {
	name string
	of   func(*structured.Features) *bool
	// needed reports whether devices of the slice need the gate.
	needed func(*resourceapi.ResourceSlice) bool
}

var gates = []gate{
	{"DRAPartitionableDevices", func(f *structured.Features) *bool { return &f.PartitionableDevices }, func(s *resourceapi.ResourceSlice) bool {
		return s.Spec.PerDeviceNodeSelection != nil || len(s.Spec.SharedCounters) > 0 || anyDevice(s, func(d *resourceapi.Device) bool { return len(d.ConsumesCounters) > 0 })
	}},
	{"DRADeviceCompatibilityGroups", celcompat.CompatibilityGroups, func(s *resourceapi.ResourceSlice) bool {
		return anyDevice(s, func(d *resourceapi.Device) bool {
			return slices.ContainsFunc(d.ConsumesCounters, func(c resourceapi.DeviceCounterConsumption) bool { return len(compat.CompatibilityGroups(&c)) > 0 })
		})
	}},
	{"DRADeviceBindingConditions with DRAResourceClaimDeviceStatus", func(f *structured.Features) *bool { return &f.DeviceBindingAndStatus }, func(s *resourceapi.ResourceSlice) bool {
		return anyDevice(s, func(d *resourceapi.Device) bool { return len(d.BindingConditions) > 0 })
	}},
	{"DRAListTypeAttributes", func(f *structured.Features) *bool { return &f.ListTypeAttributes }, func(s *resourceapi.ResourceSlice) bool {
		return anyDevice(s, func(d *resourceapi.Device) bool {
			for _, a := range d.Attributes {
				if len(a.IntValues)+len(a.BoolValues)+len(a.StringValues)+len(a.VersionValues) > 0 {
					return true
				}
			}
			return false
		})
	}},
	{"DRAFractionalCapacityRange", celcompat.FractionalCapacityRange, func(s *resourceapi.ResourceSlice) bool {
		return anyDevice(s, func(d *resourceapi.Device) bool {
			for _, c := range d.Capacity {
				if c.RequestPolicy != nil && c.RequestPolicy.ValidRange != nil {
					return true
				}
			}
			return false
		})
	}},
	{"DRAOptionalNodeOperations", celcompat.OptionalNodeOperations, func(s *resourceapi.ResourceSlice) bool {
		return compat.SkipsNodeOperations(&s.Spec)
	}},
}

func anyDevice(slice *resourceapi.ResourceSlice, has func(*resourceapi.Device) bool) bool {
	return slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return has(&d) })
}

// lacking returns the gates that are off although devices of the node need them.
func (p *Problem) lacking(node *v1.Node) []gate {
	return slices.DeleteFunc(slices.Clone(gates), func(g gate) bool {
		return *g.of(&p.Features) || !slices.ContainsFunc(p.Slices, func(s *resourceapi.ResourceSlice) bool { return mayBeFor(s, node) && g.needed(s) })
	})
}

// features returns a message with a minimal set of gates that must be turned on. If the claims fit only after the owners give
// back their devices, features assumes that they have done so.
func (p *Problem) features(ctx context.Context, node *v1.Node, _ []resourceapi.AllocationResult, owners []Owner) (string, error) {
	needed := p.lacking(node)
	fits := func(gates []gate) (bool, error) {
		with := p.withGates(node, gates)
		results, err := with.fits(ctx, node, with.Claims, with.Allocated)
		if results == nil && err == nil {
			results, err = with.fitsWithout(ctx, node, owners)
		}
		return results != nil, err
	}
	for i := 0; i < len(needed); {
		rest := slices.Delete(slices.Clone(needed), i, i+1)
		switch enough, err := fits(rest); {
		case err != nil:
			return "", err
		case enough:
			needed = rest
		default:
			i++
		}
	}
	if len(needed) == 0 {
		return "devices skip node operations, but the kubelet of the node does not support that", nil
	}
	var names []string
	for _, g := range needed {
		names = append(names, g.name)
	}
	return "devices need feature gates that are off: " + strings.Join(names, ", "), nil
}

func (p *Problem) brokenPools(node *v1.Node, _ []resourceapi.AllocationResult) string {
	var all []string
	for _, b := range p.broken(node) {
		if b.Invalid != "" {
			all = append(all, fmt.Sprintf("pool %s/%s is invalid: %s", b.Driver, b.Name, b.Invalid))
			continue
		}
		i := slices.IndexFunc(p.Slices, func(s *resourceapi.ResourceSlice) bool {
			return s.Spec.Driver == b.Driver && s.Spec.Pool.Name == b.Name && s.Spec.Pool.Generation == b.Generation
		})
		all = append(all, fmt.Sprintf("pool %s/%s is incomplete: %d of %d ResourceSlices of generation %d can be used",
			b.Driver, b.Name, b.Published, p.Slices[i].Spec.Pool.ResourceSliceCount, b.Generation))
	}
	return listed(all)
}

func (p *Problem) nodeSelectors(_ *v1.Node, results []resourceapi.AllocationResult) string {
	pools := sets.New[string]()
	for d, of := range p.devicesOf(results) {
		if of.slice.Spec.NodeSelector != nil || of.device.NodeSelector != nil {
			pools.Insert(d.Driver.String() + "/" + d.Pool.String())
		}
	}
	return fmt.Sprintf("the node selector of devices in pool %s does not match the node", listed(sets.List(pools)))
}

// taints returns a message with the taints that are not tolerated and, if known, their DeviceTaintRules.
func (p *Problem) taints(_ *v1.Node, results []resourceapi.AllocationResult) string {
	all := sets.New[string]()
	for id, of := range p.devicesOf(results) {
		for _, taint := range of.device.Taints {
			if !keepsAway(taint) || slices.ContainsFunc(of.result.Tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) }) {
				continue
			}
			what := fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
			if rule := p.ruleOf(id, taint); rule != "" {
				what += " of DeviceTaintRule " + rule
			}
			all.Insert(what)
		}
	}
	return "devices that match have taints that the claims don't tolerate: " + listed(sets.List(all))
}

// ruleOf returns the name of the DeviceTaintRule that adds a taint to a device. If several rules add it, ruleOf returns the
// first name in alphabetical order. It returns "" if the driver publishes the taint.
func (p *Problem) ruleOf(id structured.DeviceID, taint resourceapi.DeviceTaint) (name string) {
	for _, rule := range p.TaintRules {
		if t := rule.Spec.Taint; t.Key == taint.Key && t.Value == taint.Value && string(t.Effect) == string(taint.Effect) &&
			compat.Taints(rule, id.Driver.String(), id.Pool.String(), id.Device.String()) && (name == "" || rule.Name < name) {
			name = rule.Name
		}
	}
	return name
}

// capacities returns a message with the requested capacities that exceed the free capacities of their devices.
func (p *Problem) capacities(_ *v1.Node, results []resourceapi.AllocationResult) string {
	used := map[structured.DeviceID]map[resourceapi.QualifiedName]resource.Quantity{}
	p.eachAllocated(func(id structured.DeviceID, result *resourceapi.DeviceRequestAllocationResult) {
		if used[id] == nil {
			used[id] = map[resourceapi.QualifiedName]resource.Quantity{}
		}
		for name, amount := range result.ConsumedCapacity {
			sum := used[id][name]
			sum.Add(amount)
			used[id][name] = sum
		}
	})
	all := sets.New[string]()
	for i, claim := range p.Claims {
		if i >= len(results) {
			break
		}
		for id, of := range p.devicesOf(results[i : i+1]) {
			for name, wanted := range requestedOf(claim, of.result.Request) {
				has := of.device.Capacity[name].Value
				left := has.DeepCopy()
				left.Sub(used[id][name])
				if wanted.Cmp(left) > 0 {
					all.Insert(fmt.Sprintf("%s of %s, but device %s has %s, of which %s is free", wanted.String(), name, id.Device, has.String(), left.String()))
				}
			}
		}
	}
	return "too much capacity is requested: " + listed(sets.List(all))
}

// requestedOf returns the capacities that a request of a claim asks for. request is "request/alternative" for an alternative.
func requestedOf(claim *resourceapi.ResourceClaim, request string) map[resourceapi.QualifiedName]resource.Quantity {
	name, sub, _ := strings.Cut(request, "/")
	for _, r := range claim.Spec.Devices.Requests {
		switch {
		case r.Name != name:
		case r.Exactly != nil && r.Exactly.Capacity != nil:
			return r.Exactly.Capacity.Requests
		default:
			for _, s := range r.FirstAvailable {
				if s.Name == sub && s.Capacity != nil {
					return s.Capacity.Requests
				}
			}
		}
	}
	return nil
}

// published is a published device with its slice and its allocation result.
type published struct {
	slice  *resourceapi.ResourceSlice
	device *resourceapi.Device
	result *resourceapi.DeviceRequestAllocationResult
}

// devicesOf returns the devices of the results, as published.
func (p *Problem) devicesOf(results []resourceapi.AllocationResult) map[structured.DeviceID]published {
	of := map[structured.DeviceID]*resourceapi.DeviceRequestAllocationResult{}
	for i := range results {
		for j := range results[i].Devices.Results {
			r := &results[i].Devices.Results[j]
			of[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)] = r
		}
	}
	found := p.devices(func(id structured.DeviceID) bool { return of[id] != nil })
	for id, d := range found {
		d.result = of[id]
		found[id] = d
	}
	return found
}

// devices returns the published devices. It ignores a device if are(id) is false. If slices of several generations publish a
// device, the latest one counts.
func (p *Problem) devices(are func(structured.DeviceID) bool) map[structured.DeviceID]published {
	found := map[structured.DeviceID]published{}
	for _, slice := range p.Slices {
		for i := range slice.Spec.Devices {
			id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
			if known := found[id]; are(id) && (known.slice == nil || known.slice.Spec.Pool.Generation < slice.Spec.Pool.Generation) {
				found[id] = published{slice: slice, device: &slice.Spec.Devices[i]}
			}
		}
	}
	return found
}

// eachAllocated calls f for each device in use, with its allocation result.
func (p *Problem) eachAllocated(f func(structured.DeviceID, *resourceapi.DeviceRequestAllocationResult)) {
	for _, claim := range p.Allocated {
		results := usedBy(claim)
		for i := range results {
			f(structured.MakeDeviceID(results[i].Driver, results[i].Pool, results[i].Device), &results[i])
		}
	}
}

// listed joins the first maxListed texts.
func listed(texts []string) string {
	if len(texts) > maxListed {
		texts = append(texts[:maxListed:maxListed], fmt.Sprintf("and %d more", len(texts)-maxListed))
	}
	return strings.Join(texts, ", ")
}
