// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/compat"
)

// These are the kinds of causes.
const (
	// CauseFeature means that devices need a feature gate that is off, or a feature that the node lacks.
	CauseFeature = "Feature"
	// CausePool means that the devices of a pool can't be used because the pool is incomplete or invalid.
	CausePool = "Pool"
	// CauseNodeSelector means that the node selector of devices does not match the node.
	CauseNodeSelector = "NodeSelector"
	// CauseTaint means that devices have taints that the claims don't tolerate.
	CauseTaint = "Taint"
	// CauseCapacity means that devices lack the requested capacity.
	CauseCapacity = "Capacity"
	// CauseCounters means that the free amounts of a pool's counters are too small.
	CauseCounters = "Counters"
)

// Cause is an obstacle for devices that pass all selectors and constraints and that no claim has in use.
type Cause struct {
	// Kind is one of CauseFeature, CausePool, CauseNodeSelector, CauseTaint, CauseCapacity and CauseCounters.
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// relaxation is one kind of cause, with the function that removes the cause from a problem.
type relaxation struct {
	kind string
	// of returns a copy of the problem without the cause, or nil if the problem does not have the cause.
	of      func(*Problem, *v1.Node) *Problem
	message messageFunc
}

// A messageFunc returns the message for a cause on a node. The results are an allocation found without the cause. If the claims
// fit only after the owners give back their devices, the function assumes that they have done so.
type messageFunc func(*Problem, context.Context, *v1.Node, []resourceapi.AllocationResult, []Owner) (string, error)

// fromObjects returns a messageFunc for a message that depends only on objects, without a search.
func fromObjects(message func(*Problem, *v1.Node, []resourceapi.AllocationResult) string) messageFunc {
	return func(p *Problem, _ context.Context, node *v1.Node, results []resourceapi.AllocationResult, _ []Owner) (string, error) {
		return message(p, node, results), nil
	}
}

// relaxations lists all kinds of causes. If several must be removed together, the search first tries to drop earlier kinds.
var relaxations = []relaxation{
	{CauseNodeSelector, (*Problem).onAllNodes, fromObjects((*Problem).nodeSelectors)},
	{CauseFeature, (*Problem).withFeatures, (*Problem).features},
	{CausePool, (*Problem).withWholePools, fromObjects((*Problem).brokenPools)},
	{CauseTaint, (*Problem).untainted, fromObjects((*Problem).taints)},
	{CauseCapacity, (*Problem).withoutCapacities, fromObjects((*Problem).capacities)},
	{CauseCounters, (*Problem).withoutCounters, (*Problem).counters},
}

// relaxed returns a copy of the problem without the given kinds of causes.
func (p *Problem) relaxed(node *v1.Node, kinds []relaxation) *Problem {
	for _, r := range kinds {
		if without := r.of(p, node); without != nil {
			p = without
		}
	}
	return p
}

// present returns the relaxations that change the problem. It includes node selectors only if a request has no matching device.
func (p *Problem) present(node *v1.Node, requests []Request) []relaxation {
	return slices.DeleteFunc(slices.Clone(relaxations), func(r relaxation) bool {
		return r.of(p, node) == nil || r.kind == CauseNodeSelector && !slices.ContainsFunc(requests, Request.hasNone)
	})
}

// causes returns the causes to report. If the claims fit after removing a single cause, it returns each such cause. Otherwise,
// if the claims don't fit even with all devices free, it returns a minimal set of causes to remove together. relaxed is then
// the problem without these causes, because claims may be in the way in addition.
func (p *Problem) causes(ctx context.Context, node *v1.Node, requests []Request, present []relaxation, owners []Owner) (causes []Cause, relaxed *Problem, err error) {
	for _, r := range present {
		without := r.of(p, node)
		results, err := without.fits(ctx, node, without.Claims, p.Allocated)
		if err != nil {
			return nil, p, err
		}
		if results != nil {
			cause, err := p.cause(ctx, r, node, results, owners)
			if err != nil {
				return nil, p, err
			}
			causes = append(causes, cause)
		}
	}
	if len(causes) > 0 || len(present) == 0 {
		return causes, p, nil
	}
	if results, err := p.fitsWithout(ctx, node, owners); results != nil || err != nil {
		return nil, p, err
	}
	results, err := p.relaxed(node, present).fitsWithout(ctx, node, owners)
	if results == nil || err != nil {
		return p.unknown(node, requests), p, err
	}
	for i := 0; i < len(present); {
		rest := slices.Delete(slices.Clone(present), i, i+1)
		fewer, err := p.relaxed(node, rest).fitsWithout(ctx, node, owners)
		switch {
		case err != nil:
			return nil, p, err
		case fewer == nil:
			i++
		default:
			present, results = rest, fewer
		}
	}
	for i, r := range present {
		others := p.relaxed(node, slices.Delete(slices.Clone(present), i, i+1))
		cause, err := others.cause(ctx, r, node, results, owners)
		if err != nil {
			return nil, p, err
		}
		causes = append(causes, cause)
	}
	return causes, p.relaxed(node, present), nil
}

func (p *Problem) cause(ctx context.Context, r relaxation, node *v1.Node, results []resourceapi.AllocationResult, owners []Owner) (Cause, error) {
	message, err := r.message(p, ctx, node, results, owners)
	return Cause{r.kind, message}, err
}

// unknown returns a cause for pools that are incomplete or invalid, because such a pool may contain the missing devices. It
// returns nothing if each request has enough matching devices.
func (p *Problem) unknown(node *v1.Node, requests []Request) []Cause {
	if p.withWholePools(node) == nil || !slices.ContainsFunc(requests, func(r Request) bool { return r.Matching < max(r.Wanted, 1) }) {
		return nil
	}
	return []Cause{{CausePool, p.brokenPools(node, nil)}}
}

// with returns a copy of the problem after applying change to it.
func (p *Problem) with(change func(*Problem)) *Problem {
	result := *p
	change(&result)
	return &result
}

// edited returns a copy of the problem, with edit applied to each slice if has(slice) is true. It returns nil if has(slice) is
// false for all slices.
func (p *Problem) edited(has func(*resourceapi.ResourceSlice) bool, edit func(*resourceapi.ResourceSliceSpec)) *Problem {
	var edited []*resourceapi.ResourceSlice
	for i, slice := range p.Slices {
		if !has(slice) {
			continue
		}
		if edited == nil {
			edited = slices.Clone(p.Slices)
		}
		edited[i] = slice.DeepCopy()
		edit(&edited[i].Spec)
	}
	if edited == nil {
		return nil
	}
	return p.with(func(p *Problem) { p.Slices = edited })
}

// mayBeFor reports whether a node can have devices of the slice, by the node name of the slice.
func mayBeFor(slice *resourceapi.ResourceSlice, node *v1.Node) bool {
	name := ptr.Deref(slice.Spec.NodeName, "")
	return name == "" || name == node.Name
}

// editedDevices is like edited for devices. It applies edit to all devices of a slice if the slice may be for the node and
// has(device) is true for one of its devices.
func (p *Problem) editedDevices(node *v1.Node, has func(*resourceapi.Device) bool, edit func(*resourceapi.Device)) *Problem {
	return p.edited(func(slice *resourceapi.ResourceSlice) bool {
		return mayBeFor(slice, node) && slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return has(&d) })
	}, func(spec *resourceapi.ResourceSliceSpec) {
		for i := range spec.Devices {
			edit(&spec.Devices[i])
		}
	})
}

func (p *Problem) onAllNodes(*v1.Node) *Problem {
	left := maxElsewhere
	return p.edited(func(slice *resourceapi.ResourceSlice) bool {
		if slice.Spec.NodeSelector == nil && !slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return d.NodeSelector != nil }) {
			return false
		}
		left--
		return left >= 0
	}, func(spec *resourceapi.ResourceSliceSpec) {
		if spec.NodeSelector != nil {
			spec.NodeSelector, spec.AllNodes = nil, ptr.To(true)
		}
		for i := range spec.Devices {
			if d := &spec.Devices[i]; d.NodeSelector != nil {
				d.NodeSelector, d.AllNodes = nil, ptr.To(true)
			}
		}
	})
}

func (p *Problem) withFeatures(node *v1.Node) *Problem {
	with := p.withGates(node, p.lacking(node))
	if with == p {
		return nil
	}
	return with
}

// withGates returns the problem with the feature gates on, and with slices that don't skip node operations.
func (p *Problem) withGates(node *v1.Node, gates []gate) *Problem {
	with := cmp.Or(p.edited(func(slice *resourceapi.ResourceSlice) bool {
		return mayBeFor(slice, node) && compat.SkipsNodeOperations(&slice.Spec)
	}, compat.SkipNoNodeOperations), p)
	if len(gates) == 0 {
		return with
	}
	return with.with(func(p *Problem) {
		for _, g := range gates {
			*g.of(&p.Features) = true
		}
	})
}

func (p *Problem) untainted(node *v1.Node) *Problem {
	if !p.Features.DeviceTaints {
		return nil
	}
	return p.editedDevices(node, func(d *resourceapi.Device) bool { return slices.ContainsFunc(d.Taints, keepsAway) }, func(d *resourceapi.Device) { d.Taints = nil })
}

func keepsAway(taint resourceapi.DeviceTaint) bool {
	return taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
}

func (p *Problem) withoutCounters(node *v1.Node) *Problem {
	if !p.Features.PartitionableDevices {
		return nil
	}
	return p.editedDevices(node, func(d *resourceapi.Device) bool { return len(d.ConsumesCounters) > 0 }, func(d *resourceapi.Device) { d.ConsumesCounters = nil })
}

// withoutCapacities returns the problem with all requested capacities set to zero. Devices must still have these capacities.
func (p *Problem) withoutCapacities(*v1.Node) *Problem {
	if !p.Features.ConsumableCapacity {
		return nil
	}
	claims, asks := slices.Clone(p.Claims), false
	for i, claim := range claims {
		claims[i] = claim.DeepCopy()
		for _, capacity := range capacitiesOf(claims[i]) {
			for name := range capacity.Requests {
				capacity.Requests[name], asks = resource.Quantity{}, true
			}
		}
	}
	if !asks {
		return nil
	}
	return p.with(func(p *Problem) { p.Claims = claims })
}

func capacitiesOf(claim *resourceapi.ResourceClaim) (all []*resourceapi.CapacityRequirements) {
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly != nil && r.Exactly.Capacity != nil {
			all = append(all, r.Exactly.Capacity)
		}
		for _, sub := range r.FirstAvailable {
			if sub.Capacity != nil {
				all = append(all, sub.Capacity)
			}
		}
	}
	return all
}

// withWholePools returns the problem with incomplete and invalid pools made usable. An incomplete pool counts as complete with
// its published slices. In an invalid pool only the first device of each name remains. If the pool is still invalid, its
// counters are wrong and are removed.
func (p *Problem) withWholePools(node *v1.Node) *Problem {
	result := p.repaired(p.broken(node), func(*resourceapi.ResourceSliceSpec) {})
	if result == nil {
		return nil
	}
	without := result.repaired(result.broken(node), func(spec *resourceapi.ResourceSliceSpec) {
		spec.SharedCounters = nil
		for i := range spec.Devices {
			spec.Devices[i].ConsumesCounters = nil
		}
	})
	if without == nil {
		return result
	}
	return without
}

func (p *Problem) repaired(broken []allocator.BrokenPool, more func(*resourceapi.ResourceSliceSpec)) *Problem {
	seen := sets.New[structured.DeviceID]()
	return p.edited(func(slice *resourceapi.ResourceSlice) bool { return brokenPoolOf(broken, &slice.Spec) != nil }, func(spec *resourceapi.ResourceSliceSpec) {
		spec.Pool.ResourceSliceCount = int64(brokenPoolOf(broken, spec).Published)
		spec.Devices = slices.DeleteFunc(spec.Devices, func(d resourceapi.Device) bool {
			id := structured.MakeDeviceID(spec.Driver, spec.Pool.Name, d.Name)
			defer seen.Insert(id)
			return seen.Has(id)
		})
		more(spec)
	})
}

// broken returns the pools of the node whose devices can't be used because the pool is incomplete or invalid.
func (p *Problem) broken(node *v1.Node) []allocator.BrokenPool {
	return allocator.BrokenPools(p.Features, node, p.Slices)
}

func brokenPoolOf(broken []allocator.BrokenPool, spec *resourceapi.ResourceSliceSpec) *allocator.BrokenPool {
	i := slices.IndexFunc(broken, func(b allocator.BrokenPool) bool {
		return b.Driver == spec.Driver && b.Name == spec.Pool.Name && b.Generation == spec.Pool.Generation
	})
	if i < 0 {
		return nil
	}
	return &broken[i]
}
