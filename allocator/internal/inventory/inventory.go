// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory takes stock of what nodes have, whatever is in use of it: the pools of a
// node, from the latest generation of their slices, and the devices in them, in the order in
// which they are tried.
//
// An [Index] has all slices of a cluster by node and keeps the inventories that were made from
// them, as long as what they depend on are the same objects. What is in it is not modified:
// many searches look at it at the same time.
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

// Inventory is what a node has, whatever is in use of it. It is not modified.
type Inventory struct {
	Pools []*Pool
	// Candidates are the devices of the pools in the order in which they are tried.
	Candidates []*Candidate
	// Ordinary has those of them that are. HasShared: some are shared.
	Ordinary  bitset.Set
	HasShared bool
	// IsPlain: the slices say nothing about the devices but their attributes and capacities,
	// and the pools can be used.
	IsPlain bool
	// Plain are the candidates of which that can be said.
	Plain bitset.Set
	// slices are what it was made from; selfContained: from nothing else.
	slices        []*resourceapi.ResourceSlice
	selfContained bool
	// Views are what package view knows of it.
	Views atomic.Value
}

// New takes stock of a node from the slices that may be for it. all are those of the cluster.
// The error is one of node selection.
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

// DevicesSelectNodes reports whether some slices leave it to devices to say for which nodes
// they are.
func (i *Inventory) DevicesSelectNodes() bool {
	return slices.ContainsFunc(i.slices, selectsByDevice)
}

// AreUsable reports whether devices of all pools can be allocated.
func AreUsable(pools []*Pool) bool {
	return !slices.ContainsFunc(pools, func(p *Pool) bool { return p.Incomplete || p.Invalid != "" })
}

func isPlain(slice *resourceapi.ResourceSlice) bool {
	spec := slice.Spec
	spec.Driver, spec.Pool, spec.NodeName, spec.Devices = "", resourceapi.ResourcePool{}, nil, nil
	return reflect.ValueOf(spec).IsZero()
}

// plain are the candidates of which no more is said than attributes and capacities, in slices for their node.
func plain(candidates []*Candidate) bitset.Set {
	all := bitset.New(len(candidates))
	// One variable for all devices: IsZero would allocate a copy of each.
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

// Of takes stock of a node. The result is kept as long as the node's slices are the same
// objects, or, if it depends on more, all slices and the node. all are the slices that the
// index is of.
func (x *Index) Of(features structured.Features, node *v1.Node, all []*resourceapi.ResourceSlice) (*Inventory, error) {
	local, dependent := x.of(node.Name), &x.dependent
	if kept := local.kept(features); kept != nil {
		return kept, nil
	}
	if kept := dependent.get(features, node); kept != nil {
		return kept, nil
	}
	if len(x.other) > 0 || local.byDevice {
		made, err := New(features, node, slices.Concat(local.slices, x.other), all)
		if err == nil {
			dependent.keep(features, node, made)
		}
		return made, err
	}
	made, err := New(features, node, local.slices, all)
	switch {
	case err != nil:
	case made.selfContained:
		local.keep(features, made)
	default:
		dependent.keep(features, node, made)
	}
	return made, err
}

func selectsByDevice(slice *resourceapi.ResourceSlice) bool {
	return ptr.Deref(slice.Spec.PerDeviceNodeSelection, false)
}

// ConsumesCounters reports whether any of the devices does.
func (i *Inventory) ConsumesCounters() bool {
	return slices.ContainsFunc(i.Candidates, func(c *Candidate) bool { return len(c.Device.ConsumesCounters) > 0 })
}

// Conflicts are for each device those that consume so much of the same counters that both can't be
// had: a bit for each two devices.
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

// exceed reports whether two devices together consume more of a counter than there is.
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

// Candidate is a device that the node can use, at its place in the order in
// which devices are tried. It is not modified: searches share it.
type Candidate struct {
	ID     structured.DeviceID
	Device *resourceapi.Device
	Slice  *resourceapi.ResourceSlice
	Pool   *Pool
	// Position is the index in Inventory.Candidates.
	Position int
	// Shared: the device allows multiple allocations, and the feature is on.
	Shared bool
	// Ordinary: it is not shared, and has no capacities, counters, taints or conditions,
	// and there is nothing that its node must be able to do.
	Ordinary bool
}

// SelectsNodes reports whether the slice leaves it to devices to say for which nodes they are.
func (c *Candidate) SelectsNodes() bool { return selectsByDevice(c.Slice) }

// IsFor reports whether the device is for the node, which is known of others than those that
// select nodes themselves. The error is one of the device's node selector.
func (c *Candidate) IsFor(features structured.Features, node *v1.Node) (bool, error) {
	if !c.SelectsNodes() {
		return true, nil
	}
	return deviceMatches(features, node, c.Device)
}

// listCandidates numbers the devices of all pools: pools as given, their slices
// by name, devices as they stand in the slice.
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
				// Driver and pool are the same for many devices, and take a look-up each.
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
