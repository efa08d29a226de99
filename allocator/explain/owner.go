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

// Owner is an allocated claim that has devices of the node.
type Owner struct {
	// Claim is "namespace/name".
	Claim string `json:"claim"`
	// Devices lists the claim's devices on the node as "driver/pool/device".
	Devices []string `json:"devices"`

	claim *resourceapi.ResourceClaim
	ids   sets.Set[structured.DeviceID]
	// counterSets holds the counter sets that the devices consume.
	counterSets sets.Set[counterSet]
}

// Others summarizes claims of other namespaces. Users may read the devices of slices, but not who has them.
type Others struct {
	// Claims is the number of claims.
	Claims int `json:"claims"`
	// Devices lists the devices of all these claims on the node as "driver/pool/device". It is sorted, so that it does not
	// reveal which devices belong to the same claim.
	Devices []string `json:"devices"`
}

// maxOwners limits the number of searches. A larger set of owners is reported without making it minimal.
const maxOwners = 64

// owners returns the claims, by name, that have any of the devices, or other devices that consume the same counters.
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
				// List a device once, even if the claim has several shares of it.
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

// named separates the owners whose names the reader may see from the others. The others are nil if the reader may see all
// names.
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

// inTheWay returns a minimal set of owners that can't all keep their devices if the claims are to fit. ever is false if the
// claims don't fit even if all owners give back their devices.
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
			// The owners before index i are still needed, because freeing the devices of fewer owners never allows more sets.
			few = p.ownersOf(others, results)
			i = min(i, len(few))
		}
	}
	return few, true, nil
}

// fitsWithout searches a solution as if the given owners had no devices.
func (p *Problem) fitsWithout(ctx context.Context, node *v1.Node, owners []Owner) ([]resourceapi.AllocationResult, error) {
	return p.fits(ctx, node, p.Claims, p.without(owners).Allocated)
}

// without returns the problem as if the given owners had no devices.
func (p *Problem) without(owners []Owner) *Problem {
	return p.with(func(p *Problem) {
		p.Allocated = slices.DeleteFunc(slices.Clone(p.Allocated), func(claim *resourceapi.ResourceClaim) bool {
			return slices.ContainsFunc(owners, func(o Owner) bool { return o.claim == claim })
		})
	})
}

// ownersOf returns those owners that have devices of the solution, or devices that consume the same counters.
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

// counterSet identifies a counter set. Counter sets of different pools may have the same name.
type counterSet struct{ driver, pool, name string }

// counterSets maps each counter set to the devices that consume it. It ignores a device if are(id) is false.
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
