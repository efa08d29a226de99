// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory lists the devices of nodes, whether or not they are in use. It finds the pools of a node, from the latest
// generation of their slices, and the devices of these pools in the order of the search.
//
// An [Index] holds all slices of a cluster by node, and reuses inventories while the objects that they depend on are the same.
// Inventories are never modified, because concurrent searches share them.
package inventory

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/cel/device/bitset"
)

// Inventory holds the pools and devices of a node, whether or not the devices are in use. It is never modified.
type Inventory struct {
	Pools []*Pool
	// Candidates holds the devices of the pools in the order of the search.
	Candidates []*Candidate
	// Ordinary holds the positions of ordinary candidates. HasShared is true if a candidate is shared.
	Ordinary  bitset.Set
	HasShared bool
	// IsPlain is true if the slices have only devices with attributes and capacities, and all pools are complete and valid.
	IsPlain bool
	// Plain holds the positions of candidates that have only attributes and capacities.
	Plain bitset.Set
	// slices holds the slices that the inventory was made from. selfContained is true if it depends only on these slices.
	slices        []*resourceapi.ResourceSlice
	selfContained bool
	// Views caches the IDs of views for package view.
	Views atomic.Value
}

// New returns the inventory of a node. forNode holds the slices that may be for the node, and all holds the slices of the
// cluster. An error concerns node selection.
func New(features structured.Features, node *v1.Node, forNode, all []*resourceapi.ResourceSlice) (*Inventory, error) {
	pools, selfContained, err := Gather(features, node, forNode, all)
	if err != nil {
		return nil, fmt.Errorf("gather pool information: %w", err)
	}
	candidates := listCandidates(features, pools)
	result := &Inventory{
		Ordinary:      bitset.New(len(candidates)),
		Pools:         pools,
		Candidates:    candidates,
		Plain:         plain(candidates),
		slices:        forNode,
		selfContained: selfContained,
	}
	result.IsPlain = AreUsable(pools) && result.Plain.Count() == len(candidates) && !slices.ContainsFunc(forNode, func(s *resourceapi.ResourceSlice) bool { return !isPlain(s) })
	for i, c := range candidates {
		if c.Ordinary {
			result.Ordinary.Add(i)
		}
		result.HasShared = result.HasShared || c.Shared
	}
	return result, nil
}

// DevicesSelectNodes reports whether a slice leaves the selection of nodes to its devices.
func (i *Inventory) DevicesSelectNodes() bool {
	return slices.ContainsFunc(i.slices, selectsByDevice)
}

// AreUsable reports whether all pools are complete and valid.
func AreUsable(pools []*Pool) bool {
	return !slices.ContainsFunc(pools, func(p *Pool) bool { return p.Incomplete || p.Invalid != "" })
}

func isPlain(slice *resourceapi.ResourceSlice) bool {
	spec := slice.Spec
	spec.Driver, spec.Pool, spec.NodeName, spec.Devices = "", resourceapi.ResourcePool{}, nil, nil
	return reflect.ValueOf(spec).IsZero()
}

// plain returns the candidates that have only attributes and capacities, and whose slices have a node name.
func plain(candidates []*Candidate) bitset.Set {
	all := bitset.New(len(candidates))
	// Use one variable for all devices, because IsZero would allocate a copy of each device.
	var rest resourceapi.Device
	more := reflect.ValueOf(&rest).Elem()
	var slice *resourceapi.ResourceSlice
	inPlain := false
	for i, c := range candidates {
		if c.Slice != slice {
			slice, inPlain = c.Slice, isPlain(c.Slice)
		}
		rest = *c.Device
		rest.Name, rest.Attributes, rest.Capacity = "", nil, nil
		if inPlain && more.IsZero() {
			all.Add(i)
		}
	}
	return all
}

// Of returns the inventory of a node. It reuses an inventory while the slices with the node's name are the same objects. If the
// inventory depends on more, all slices and the node must be the same objects. all holds the slices of the index.
func (x *Index) Of(features structured.Features, node *v1.Node, all []*resourceapi.ResourceSlice) (*Inventory, error) {
	local, dependent := x.of(node.Name), &x.dependent
	if kept := local.cached(features); kept != nil {
		return kept, nil
	}
	if kept := dependent.get(features, node); kept != nil {
		return kept, nil
	}
	if len(x.other) > 0 || local.byDevice {
		made, err := New(features, node, slices.Concat(local.slices, x.other), all)
		if err == nil {
			dependent.store(features, node, made)
		}
		return made, err
	}
	made, err := New(features, node, local.slices, all)
	switch {
	case err != nil:
	case made.selfContained:
		local.store(features, made)
	default:
		dependent.store(features, node, made)
	}
	return made, err
}

func selectsByDevice(slice *resourceapi.ResourceSlice) bool {
	return ptr.Deref(slice.Spec.PerDeviceNodeSelection, false)
}

// ConsumesCounters reports whether any device consumes counters.
func (i *Inventory) ConsumesCounters() bool {
	return slices.ContainsFunc(i.Candidates, func(c *Candidate) bool { return len(c.Device.ConsumesCounters) > 0 })
}

// Conflicts returns, for each device, the devices that can't be allocated with it because together they exceed a counter.
func (i *Inventory) Conflicts() bitset.List {
	conflicts := bitset.NewList(len(i.Candidates), len(i.Candidates))
	for at, c := range i.Candidates {
		for _, other := range i.Candidates[:at] {
			if other.Pool == c.Pool && exceed(c.Pool, c.Device, other.Device) {
				conflicts.At(at).Add(other.Position)
				conflicts.At(other.Position).Add(at)
			}
		}
	}
	return conflicts
}

// exceed reports whether two devices of a pool together exceed a counter.
func exceed(pool *Pool, a, b *resourceapi.Device) bool {
	for _, ofA := range a.ConsumesCounters {
		for _, ofB := range b.ConsumesCounters {
			if ofA.CounterSet != ofB.CounterSet {
				continue
			}
			for name, amount := range ofA.Counters {
				both := amount.Value.DeepCopy()
				both.Add(ofB.Counters[name].Value)
				if _, consumed := ofB.Counters[name]; consumed && both.Cmp(pool.CounterSets[ofA.CounterSet][name].Value) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// Candidate is a device that the node can use. It is never modified, because searches share it.
type Candidate struct {
	ID     structured.DeviceID
	Device *resourceapi.Device
	Slice  *resourceapi.ResourceSlice
	Pool   *Pool
	// Position is the index in Inventory.Candidates. The search tries devices in the order of this index.
	Position int
	// Shared is true if the device allows multiple allocations and the feature ConsumableCapacity is on.
	Shared bool
	// Ordinary is true if the device is not shared, has no capacities, counters, taints or conditions, and needs no node features.
	Ordinary bool
}

// SelectsNodes reports whether the slice leaves the selection of nodes to its devices.
func (c *Candidate) SelectsNodes() bool { return selectsByDevice(c.Slice) }

// IsFor reports whether the node can use the device. If the slice leaves the selection of nodes to its devices, IsFor evaluates
// the device's own selection. Otherwise it returns true. An error concerns the node selector of the device.
func (c *Candidate) IsFor(features structured.Features, node *v1.Node) (bool, error) {
	if !c.SelectsNodes() {
		return true, nil
	}
	return deviceMatches(features, node, c.Device)
}

// listCandidates returns the devices of the pools in the order of the search: pools in the given order, the slices of a pool by
// name, and the devices of a slice as published.
func listCandidates(features structured.Features, pools []*Pool) []*Candidate {
	count := 0
	for _, p := range pools {
		for _, slice := range p.Slices {
			count += len(slice.Spec.Devices)
		}
	}
	all := make([]Candidate, count)
	candidates := make([]*Candidate, 0, count)
	for _, p := range pools {
		id := structured.MakeDeviceID(p.Driver, p.Name, "")
		for _, slice := range p.Slices {
			for i := range slice.Spec.Devices {
				d := &slice.Spec.Devices[i]
				position := len(candidates)
				// Convert only the device's name here. Each conversion needs a look-up, and many devices have the same driver and pool.
				id.Device = draapi.MakeUniqueString(d.Name)
				all[position] = Candidate{
					ID:       id,
					Device:   d,
					Slice:    slice,
					Pool:     p,
					Position: position,
					Shared:   features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
				}
				all[position].Ordinary = isOrdinary(slice, d) && !all[position].Shared
				candidates = append(candidates, &all[position])
			}
		}
	}
	return candidates
}

func isOrdinary(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return !compat.SkipsNodeOperations(&slice.Spec) && len(d.Capacity) == 0 && len(d.ConsumesCounters) == 0 &&
		len(d.Taints) == 0 && len(d.BindingConditions) == 0
}
