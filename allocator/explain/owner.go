// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
)

// Owner is a claim that has devices of the node.
type Owner struct {
	// Claim is "namespace/name".
	Claim string `json:"claim"`
	// Devices are "driver/pool/device".
	Devices []string `json:"devices"`

	claim *resourceapi.ResourceClaim
	ids   sets.Set[structured.DeviceID]
	// counterSets are the counter sets that the devices consume.
	counterSets sets.Set[counterSet]
}

// Others are claims of other namespaces. Devices in slices are public, but their owners are not.
type Others struct {
	// Claims is the number of claims.
	Claims int `json:"claims"`
	// Devices are the devices of these claims on the node, "driver/pool/device", sorted. So they don't reveal which devices belong
	// to one claim.
	Devices []string `json:"devices"`
}

// maxOwners limits the searches. A larger set of owners is not minimized.
const maxOwners = 64

// owners returns the claims with any of the devices, or with other devices that consume the same counters, sorted by name.
func (p *Problem) owners(devices []structured.DeviceID) []Owner {
	onNode := sets.New(devices...)
	consumed := p.counterSets(onNode.Has)
	inUse := sets.New[structured.DeviceID]()
	if len(consumed) > 0 {
		p.eachAllocated(func(id structured.DeviceID, _ *resourceapi.DeviceRequestAllocationResult) { inUse.Insert(id) })
		for set, of := range p.counterSets(inUse.Has) {
			if consumed[set] != nil {
				onNode = onNode.Union(of)
			}
		}
	}
	var all []Owner
	for _, claim := range p.Allocated {
		owner := Owner{Claim: klog.KObj(claim).String(), claim: claim, ids: sets.New[structured.DeviceID](), counterSets: sets.New[counterSet]()}
		for _, result := range usedBy(claim) {
			if id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device); onNode.Has(id) && !owner.ids.Has(id) {
				// A claim may have several shares of a device.
				owner.Devices = append(owner.Devices, id.String())
				owner.ids.Insert(id)
			}
		}
		if len(owner.Devices) > 0 {
			all = append(all, owner)
		}
	}
	for set, of := range p.counterSets(inUse.Has) {
		for i := range all {
			if of.HasAny(all[i].ids.UnsortedList()...) {
				all[i].counterSets.Insert(set)
			}
		}
	}
	slices.SortFunc(all, func(a, b Owner) int { return strings.Compare(a.Claim, b.Claim) })
	return all
}

// named separates owners that may be named from the others, which are nil if all may be named.
func (p *Problem) named(owners []Owner) ([]Owner, *Others) {
	var named []Owner
	var others Others
	devices := sets.New[string]()
	for _, owner := range owners {
		if p.mayName(owner.claim) {
			named = append(named, owner)
			continue
		}
		others.Claims++
		devices.Insert(owner.Devices...)
	}
	if others.Claims == 0 {
		return named, nil
	}
	others.Devices = sets.List(devices)
	return named, &others
}

func (p *Problem) mayName(claim *resourceapi.ResourceClaim) bool {
	return p.NamesAll || slices.ContainsFunc(p.Claims, func(own *resourceapi.ResourceClaim) bool { return own.Namespace == claim.Namespace })
}

// inTheWay returns a minimal set of owners that can't all keep their devices. ever is false if the claims don't fit even if no
// owner keeps a device.
func (p *Problem) inTheWay(ctx context.Context, node *v1.Node, owners []Owner) (few []Owner, ever bool, err error) {
	results, err := p.fitsWithout(ctx, node, owners)
	if err != nil || results == nil {
		return nil, false, err
	}
	few = p.ownersOf(owners, results)
	if len(few) > maxOwners {
		return few, true, nil
	}
	for i := 0; i < len(few); {
		others := slices.Delete(slices.Clone(few), i, i+1)
		results, err := p.fitsWithout(ctx, node, others)
		switch {
		case err != nil:
			return nil, true, err
		case results == nil:
			i++
		default:
			// Earlier owners are still needed: freeing the devices of fewer owners never makes more sets possible.
			few = p.ownersOf(others, results)
			i = min(i, len(few))
		}
	}
	return few, true, nil
}

// fitsWithout searches a solution without the devices of the given owners.
func (p *Problem) fitsWithout(ctx context.Context, node *v1.Node, owners []Owner) ([]resourceapi.AllocationResult, error) {
	return p.fits(ctx, node, p.Claims, p.without(owners).Allocated)
}

// without returns the problem without the devices of the owners.
func (p *Problem) without(owners []Owner) *Problem {
	return p.with(func(p *Problem) {
		p.Allocated = slices.DeleteFunc(slices.Clone(p.Allocated), func(claim *resourceapi.ResourceClaim) bool {
			return slices.ContainsFunc(owners, func(o Owner) bool { return o.claim == claim })
		})
	})
}

// ownersOf returns the owners of devices in a solution, or of devices that consume the same counters.
func (p *Problem) ownersOf(owners []Owner, results []resourceapi.AllocationResult) []Owner {
	needed := sets.New[structured.DeviceID]()
	for _, result := range results {
		for _, d := range result.Devices.Results {
			needed.Insert(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
		}
	}
	consumed := p.counterSets(needed.Has)
	return slices.DeleteFunc(slices.Clone(owners), func(o Owner) bool {
		return !o.ids.HasAny(needed.UnsortedList()...) && !slices.ContainsFunc(o.counterSets.UnsortedList(), func(c counterSet) bool { return consumed[c] != nil })
	})
}

// counterSet identifies a counter set. Pools may have counter sets with the same name.
type counterSet struct{ driver, pool, name string }

// counterSets returns the counter sets that the selected devices consume, each with its devices.
func (p *Problem) counterSets(are func(structured.DeviceID) bool) map[counterSet]sets.Set[structured.DeviceID] {
	all := map[counterSet]sets.Set[structured.DeviceID]{}
	for _, slice := range p.Slices {
		for i := range slice.Spec.Devices {
			for _, consumption := range slice.Spec.Devices[i].ConsumesCounters {
				id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
				if !are(id) {
					break
				}
				set := counterSet{slice.Spec.Driver, slice.Spec.Pool.Name, consumption.CounterSet}
				if all[set] == nil {
					all[set] = sets.New[structured.DeviceID]()
				}
				all[set].Insert(id)
			}
		}
	}
	return all
}
