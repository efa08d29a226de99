// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// LayoutOf returns the coordinates and the group of each node, as far as the prepared expressions read them.
func LayoutOf(ctx context.Context, prepared *allocator.PreparedClaim, nodes []Node) *device.Layout {
	layout := &device.Layout{At: make([][]int64, len(nodes)), Groups: make([]string, len(nodes))}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Placed, nodes[i].Takes = false, []bool{true}
	}
	members := make([]*device.Device, len(nodes))
	for _, m := range (&Problem{Group: &Group{}, requests: requestsFor(0, []int{1})}).members(nodes, readingOf(prepared.Expressions())) {
		members[m.node] = device.New(device.NodeDriver, &resourceapi.Device{Attributes: m.attributes, Capacity: m.capacity})
	}
	for _, e := range prepared.Expressions() {
		layout.Add(ctx, e, members, cel.NewBudget(allocator.DefaultBudget().Cost))
	}
	return layout
}
