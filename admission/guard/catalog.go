// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
)

// catalog has what is published of pools. What follows from the slices of a pool is found out when it is
// needed, and kept until one of them changes.
type catalog struct {
	// pools has the names of slices by pool, and slices those by name.
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

// see takes the latest version of a slice. What can't be computed with is removed from it.
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

// pool returns what is published of a pool, which may be nothing.
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
		// Names of pools that don't exist are made up by whoever writes.
		c.known[id] = pool
	}
	return pool
}
