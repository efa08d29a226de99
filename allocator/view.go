// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"weak"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/view"
)

// view is the node's devices as the claims see them.
func (s *search) view() *view.View {
	if s.seen == nil {
		s.seen = s.allocator.viewOf(s.inventory, s.claims)
	}
	return s.seen
}

// viewOf is an inventory's devices as the claims see them.
func (a *Allocator) viewOf(of *inventory.Inventory, claims []*resourceapi.ResourceClaim) *view.View {
	return a.cache.viewOf(of, a.readSetOf(claims))
}

func (c *Cache) viewOf(of *inventory.Inventory, read view.ReadSet) *view.View {
	latest := of.Attached.(view.Latest)
	if known := latest.Get(read); known != nil {
		return known
	}
	v := c.findView(of, read)
	latest.Keep(read, v)
	return v
}

func (c *Cache) findView(of *inventory.Inventory, read view.ReadSet) *view.View {
	var all []byte
	for _, p := range of.Pools {
		for _, slice := range p.Slices {
			content := c.contents.Get(contentKey{weak.Make(slice), read}, func() fingerprint.Sum { return view.Content(slice, read) })
			all = append(all, content[:]...)
		}
	}
	return c.views.Get(viewKey{fingerprint.Of(all), read}, func() *view.View { return view.New(view.Number(c.viewsMade.Add(1)), of) })
}
