// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
)

// growth is what becomes of workloads that differ in the number of nodes only.
type growth struct {
	few, many place
}

// growths go from the fewest nodes to the most, from a thousand on: in smaller clusters what
// does not depend on nodes hides the rest.
func (r *Results) growths() []growth {
	const from = 1000
	var all []growth
	for _, p := range r.places() {
		if p.kind != "Steady" || p.nodes < from {
			continue
		}
		if i := slices.IndexFunc(all, func(g growth) bool { return g.few.in(p.nodes) == p }); i >= 0 {
			all[i].many = p
		} else {
			all = append(all, growth{p, p})
		}
	}
	return slices.DeleteFunc(all, func(g growth) bool { return g.few == g.many })
}

// in is the same with another number of nodes.
func (p place) in(nodes int) place {
	p.nodes = nodes
	return p
}

// growthTable has by how much time and processor time of a pod grow with the nodes.
func (r *Results) growthTable() string {
	text := "| in use | devices | pods | plugin | nodes | time a pod | processor time a pod |\n|---|---|---|---|---|---|---|\n"
	for _, g := range r.growths() {
		few, many, plugin := r.named(g.few.name()), r.named(g.many.name()), "celset"
		if isUpstream(g.few.shape) {
			plugin = "upstream"
		}
		text += fmt.Sprintf("| %s | %d | %s | %s | %d to %d | x %s | x %s |\n", g.few.occupancy, g.few.devices, g.few.shape, plugin, g.few.nodes, g.many.nodes,
			times(few.median(throughput)/many.median(throughput)), times(many.median(processor)/few.median(processor)))
	}
	return text
}
