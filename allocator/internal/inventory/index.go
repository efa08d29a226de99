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

// Each scheduling cycle comes with a list of all slices of the cluster, in any order.
// Usually they are the same objects as before; then they are not sorted by node again.

// Index is the slices of a cluster by node. It is not modified, but for what is kept
// in it.
type Index struct {
	// positions has all slices, each with a number of its own.
	positions map[*resourceapi.ResourceSlice]int
	// local has those with a node name, other those without.
	local map[string]*nodeSlices
	other []*resourceapi.ResourceSlice
	// none is for the nodes that no slice names.
	none nodeSlices
	// dependent has the inventories that depend on more than the slices of the node.
	dependent dependentInventories
}

// nodeSlices are the slices that name a node.
type nodeSlices struct {
	slices []*resourceapi.ResourceSlice
	// byDevice: some of them leave it to devices to name nodes.
	byDevice bool
	// inventory is the inventory of the node if it depends on nothing but these slices.
	inventory atomic.Pointer[keptInventory]
}

type keptInventory struct {
	features  structured.Features
	inventory *Inventory
}

// Latest has the index of the slices that there were last. The zero value has none.
type Latest struct{ index atomic.Pointer[Index] }

// Of returns the index of the slices, which takes over what is known of nodes whose slices are
// the same.
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

// inherit takes over what is known of the nodes whose slices are the same.
func (x *Index) inherit(from *Index) {
	for name, of := range x.local {
		if before := from.local[name]; before != nil && slices.Equal(before.slices, of.slices) {
			of.inventory.Store(before.inventory.Load())
		}
	}
}

// has reports whether the index is of these slices, in any order.
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

// of returns the slices that name a node.
func (x *Index) of(node string) *nodeSlices {
	if found := x.local[node]; found != nil {
		return found
	}
	return &x.none
}

// kept returns the inventory that was made with the same features.
func (n *nodeSlices) kept(features structured.Features) *Inventory {
	if kept := n.inventory.Load(); kept != nil && kept.features == features {
		return kept.inventory
	}
	return nil
}

// keep keeps an inventory that depends on nothing but the slices.
func (n *nodeSlices) keep(features structured.Features, of *Inventory) {
	n.inventory.Store(&keptInventory{features, of})
}

// maxDependentDevices bounds the nodes and devices in [dependentInventories]: a slice may be
// for all nodes, and each of them has its devices then.
const maxDependentDevices = 1 << 18

// dependentInventories are the inventories of nodes that depend on more than the slices
// with the node's name: on node selectors and the labels of the node, or on what of a pool
// is elsewhere. They are kept as long as all slices of the cluster and the node are the
// same objects. Pods that come one after the other look at the same nodes again and again.
type dependentInventories struct {
	mutex sync.Mutex
	// of is by the name of the node.
	of map[string]dependentInventory
	// size is the number of nodes and of devices in them.
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

// keep takes the place of what was kept of another version of the node. It keeps nothing
// if there is no room.
func (d *dependentInventories) keep(features structured.Features, node *v1.Node, made *Inventory) {
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
