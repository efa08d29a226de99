// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Single workloads may be measured again, perhaps on another machine. Those that were not stay what
// they were, and are compared with none of another machine.

// replaced has what was measured now in the place of what is kept of the same workloads. The machine
// of the results stays as long as one of their workloads is left.
func (r *Results) replaced(measured *Results) *Results {
	all := &Results{Machine: measured.Machine}
	add := func(of *Results, w *Workload) {
		all.Workloads = append(all.Workloads, &Workload{Name: w.Name, Runs: w.Runs, Other: new(of.on(w))})
	}
	for _, w := range r.Workloads {
		if measured.named(w.Name) != nil {
			continue
		}
		if add(r, w); w.Other == nil {
			all.Machine = r.Machine
		}
	}
	for _, w := range measured.Workloads {
		add(measured, w)
	}
	for _, w := range all.Workloads {
		if *w.Other == all.Machine {
			w.Other = nil
		}
	}
	slices.SortFunc(all.Workloads, func(a, b *Workload) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// on is the machine that a workload ran on.
func (r *Results) on(w *Workload) Machine {
	if w != nil && w.Other != nil {
		return *w.Other
	}
	return r.Machine
}

// beside tells whether both ran on one machine.
func (w *Workload) beside(other *Workload) bool {
	return w.Other == other.Other || w.Other != nil && other.Other != nil && *w.Other == *other.Other
}

// measuredOn names the machine, and others with what ran on them.
func (r *Results) measuredOn() string {
	var others []Machine
	names := map[Machine][]string{}
	for _, w := range r.Workloads {
		if w.Other == nil {
			continue
		}
		if names[*w.Other] == nil {
			others = append(others, *w.Other)
		}
		names[*w.Other] = append(names[*w.Other], "`"+w.Name+"`")
	}
	text := r.String()
	for _, other := range others {
		text += fmt.Sprintf(";\nand on %s: %s", other, strings.Join(names[other], ", "))
	}
	return text
}
