// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/memo"
)

// inventory is what a node has, whatever is in use of it. It is not modified.
type inventory struct {
	pools []*pool
	// candidates are the devices of the pools in the order in which they are tried.
	candidates []*candidate
	// ordinary has those of them that are. hasShared: some are shared.
	ordinary  bitset.Set
	hasShared bool
	// known is its hardware, for claims with some footprints.
	known keptHardware
	// isPlain: no device has anything but attributes and capacities.
	isPlain bool
	// slices are what it was made from; selfContained: from nothing else.
	slices        []*resourceapi.ResourceSlice
	selfContained bool
}

// inventoryOf takes stock of a node. The result is kept as long as the node's slices
// are the same objects, or, if it depends on more, all slices and the node.
func (a *Allocator) inventoryOf(node *v1.Node) (*inventory, error) {
	local, dependent := a.slicesBy.of(node.Name), &a.slicesBy.dependent
	if kept := local.kept(a.features); kept != nil {
		return kept, nil
	}
	if kept := dependent.get(a.features, node); kept != nil {
		return kept, nil
	}
	if len(a.slicesBy.other) > 0 || local.byDevice {
		made, err := a.newInventory(node, slices.Concat(local.slices, a.slicesBy.other))
		if err == nil {
			dependent.keep(a.features, node, made)
		}
		return made, err
	}
	made, err := a.newInventory(node, local.slices)
	switch {
	case err != nil:
	case made.selfContained:
		local.keep(a.features, made)
	default:
		dependent.keep(a.features, node, made)
	}
	return made, err
}

func selectsByDevice(slice *resourceapi.ResourceSlice) bool {
	return ptr.Deref(slice.Spec.PerDeviceNodeSelection, false)
}

func (a *Allocator) newInventory(node *v1.Node, forNode []*resourceapi.ResourceSlice) (*inventory, error) {
	pools, selfContained, err := gatherPools(a.features, node, forNode, a.allSlices)
	if err != nil {
		return nil, fmt.Errorf("gather pool information: %w", err)
	}
	candidates := listCandidates(a.features, pools)
	result := &inventory{
		ordinary:      bitset.New(len(candidates)),
		pools:         pools,
		candidates:    candidates,
		isPlain:       isPlain(pools, forNode),
		slices:        forNode,
		selfContained: selfContained,
		known:         keptHardware{memo.NewSlot[[]seenHardware](a.cache.memory)},
	}
	for i, c := range candidates {
		if c.ordinary {
			result.ordinary.Add(i)
		}
		result.hasShared = result.hasShared || c.shared
	}
	return result, nil
}
