// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
)

// catalog has the published ResourceSlices by pool. It computes the published pool on demand, and caches the pool until a slice
// of it changes.
type catalog struct {
	// pools maps a pool to the names of its slices. slices maps a name to the slice. known has the cached pools.
	pools  map[poolID]map[string]struct{}
	slices map[string]*resourceapi.ResourceSlice
	known  map[poolID]*allocator.PublishedPool
}

func newCatalog() catalog {
	return catalog{
		pools: map[poolID]map[string]struct{}{}, slices: map[string]*resourceapi.ResourceSlice{}, known: map[poolID]*allocator.PublishedPool{},
	}
}

func poolOf(slice *resourceapi.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// see records the latest version of a slice. It modifies the slice: [allocator.LimitQuantities] removes quantities out of
// range.
func (c *catalog) see(slice *resourceapi.ResourceSlice) {
	allocator.LimitQuantities(slice)
	c.remove(slice.Name)
	pool := poolOf(slice)
	if c.pools[pool] == nil {
		c.pools[pool] = map[string]struct{}{}
	}
	c.pools[pool][slice.Name] = struct{}{}
	c.slices[slice.Name] = slice
	delete(c.known, pool)
}

func (c *catalog) remove(name string) {
	former, found := c.slices[name]
	if !found {
		return
	}
	pool := poolOf(former)
	delete(c.slices, name)
	delete(c.known, pool)
	delete(c.pools[pool], name)
	if len(c.pools[pool]) == 0 {
		delete(c.pools, pool)
	}
}

// pool returns the published pool with the ID. The result is empty if the pool has no slices.
func (c *catalog) pool(id poolID) *allocator.PublishedPool {
	if known := c.known[id]; known != nil {
		return known
	}
	published := make([]*resourceapi.ResourceSlice, 0, len(c.pools[id]))
	for name := range c.pools[id] {
		published = append(published, c.slices[name])
	}
	pool := allocator.NewPublishedPool(id.driver, id.name, published)
	if len(published) > 0 {
		// Pools without slices are not cached, because writes may name any number of pools that don't exist.
		c.known[id] = pool
	}
	return pool
}
