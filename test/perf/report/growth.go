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

// growths go from each size of cluster to the largest of which there is the same, on the same machine.
func (r *Results) growths() []growth {
	type alike struct {
		place   place
		machine Machine
	}
	of := func(p place) alike { return alike{p.in(0), r.on(r.named(p.name()))} }
	largest := map[alike]place{}
	places := slices.DeleteFunc(r.places(), func(p place) bool { return p.kind != "Steady" })
	for _, p := range places {
		if known := largest[of(p)]; p.nodes > known.nodes {
			largest[of(p)] = p
		}
	}
	var all []growth
	for _, p := range places {
		if g := (growth{p, largest[of(p)]}); g.few != g.many {
			all = append(all, g)
		}
	}
	return all
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
