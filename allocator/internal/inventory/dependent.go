// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

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
