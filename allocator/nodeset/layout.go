// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"slices"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// LayoutOf returns the coordinates and groups of nodes that the prepared expressions of a group read.
func LayoutOf(ctx context.Context, prepared *allocator.PreparedClaim, nodes []Node) *device.Layout {
	layout := &device.Layout{At: make([][]int64, len(nodes)), Groups: make([]string, len(nodes))}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Placed, nodes[i].Takes = false, []bool{true}
	}
	devices := (&Problem{Group: &Group{}, Wanted: []int{1}}).slice(nodes, readingOf(prepared.Expressions())).Spec.Devices
	members := make([]*device.Device, len(nodes))
	for i := range devices {
		if m, err := memberOf(devices[i].Name); err == nil {
			members[m.node] = device.New(device.NodeDriver, &devices[i])
		}
	}
	for _, e := range prepared.Expressions() {
		layout.Add(ctx, e, members, cel.NewBudget(allocator.DefaultBudget().Cost))
	}
	return layout
}
