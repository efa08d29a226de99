// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel/device/bitset"
)

// Each scheduling cycle lists all slices of the cluster, in any order. Usually the list contains the same objects as in the
// previous cycle. Then the index of the previous cycle is reused.

// Index holds the slices of a cluster by node. Only its cached inventories change.
type Index struct {
	// positions numbers all slices of the index.
	positions map[*resourceapi.ResourceSlice]int
	// local maps the name of a node to the slices with this node name. other holds the slices without a node name.
	local map[string]*nodeSlices
	other []*resourceapi.ResourceSlice
	// noSlices represents every node without slices of its own.
	noSlices nodeSlices
	// dependent caches the inventories that depend on more than the slices with the name of the node.
	dependent dependentInventories
}

// nodeSlices holds the slices with the name of one node.
type nodeSlices struct {
	slices []*resourceapi.ResourceSlice
	// byDevice is true if one of these slices leaves the selection of nodes to its devices.
	byDevice bool
	// inventory caches the inventory of the node if it depends only on these slices.
	inventory atomic.Pointer[cachedInventory]
}

type cachedInventory struct {
	features  structured.Features
	inventory *Inventory
}

// Latest holds the index of the slices in the latest list. The zero value has no index.
type Latest struct{ index atomic.Pointer[Index] }

// Of returns the index of the slices. It keeps the cached inventories of nodes whose slices have not changed.
func (l *Latest) Of(all []*resourceapi.ResourceSlice) *Index {
	known := l.index.Load()
	if known != nil && known.has(all) {
		return known
	}
	made := newIndex(all)
	if known != nil {
		made.inherit(known)
	}
	l.index.Store(made)
	return made
}

func newIndex(all []*resourceapi.ResourceSlice) *Index {
	index := &Index{positions: make(map[*resourceapi.ResourceSlice]int, len(all)), local: make(map[string]*nodeSlices, len(all))}
	for i, slice := range all {
		index.positions[slice] = i
		name := ptr.Deref(slice.Spec.NodeName, "")
		if name == "" {
			index.other = append(index.other, slice)
			continue
		}
		of := index.local[name]
		if of == nil {
			of = &nodeSlices{}
			index.local[name] = of
		}
		of.slices = append(of.slices, slice)
		of.byDevice = of.byDevice || selectsByDevice(slice)
	}
	return index
}

// inherit copies the cached inventories of nodes whose slices have not changed.
func (x *Index) inherit(from *Index) {
	for name, of := range x.local {
		if before := from.local[name]; before != nil && slices.Equal(before.slices, of.slices) {
			of.inventory.Store(before.inventory.Load())
		}
	}
}

// has reports whether the index was made of the same slices, in any order.
func (x *Index) has(all []*resourceapi.ResourceSlice) bool {
	if len(all) != len(x.positions) {
		return false
	}
	seen := bitset.New(len(all))
	for _, slice := range all {
		position, known := x.positions[slice]
		if !known || seen.Has(position) {
			return false
		}
		seen.Add(position)
	}
	return true
}

// of returns the slices with the name of the node.
func (x *Index) of(node string) *nodeSlices {
	if found := x.local[node]; found != nil {
		return found
	}
	return &x.noSlices
}

// cached returns the cached inventory, or nil if it is missing or was made with different features.
func (n *nodeSlices) cached(features structured.Features) *Inventory {
	if kept := n.inventory.Load(); kept != nil && kept.features == features {
		return kept.inventory
	}
	return nil
}

// store caches an inventory that depends only on the slices in n.
func (n *nodeSlices) store(features structured.Features, of *Inventory) {
	n.inventory.Store(&cachedInventory{features, of})
}

// maxDependentDevices limits the number of nodes and devices in [dependentInventories]. A slice for all nodes adds its devices
// to the inventory of each node.
const maxDependentDevices = 1 << 18

// dependentInventories caches inventories that depend on more than the slices with the node's name: on node selectors and
// labels, or on slices of the same pool elsewhere. An inventory is reused while all slices of the cluster and the node are the
// same objects. This helps because the scheduler tries successive pods on the same nodes.
type dependentInventories struct {
	mutex sync.Mutex
	// of maps names of nodes to inventories.
	of map[string]dependentInventory
	// size is the number of cached nodes plus the number of their devices.
	size int
}

type dependentInventory struct {
	node      *v1.Node
	features  structured.Features
	inventory *Inventory
}

func (d *dependentInventories) get(features structured.Features, node *v1.Node) *Inventory {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if kept := d.of[node.Name]; kept.node == node && kept.features == features {
		return kept.inventory
	}
	return nil
}

// store caches the inventory of a node in place of an older version. At the limit it caches nothing.
func (d *dependentInventories) store(features structured.Features, node *v1.Node, made *Inventory) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if before, found := d.of[node.Name]; found {
		d.size -= 1 + len(before.inventory.Candidates)
		delete(d.of, node.Name)
	}
	more := 1 + len(made.Candidates)
	if d.size+more > maxDependentDevices {
		return
	}
	if d.of == nil {
		d.of = make(map[string]dependentInventory)
	}
	d.of[node.Name] = dependentInventory{node, features, made}
	d.size += more
}
