// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Results is what is kept of measurements.
type Results struct {
	// Machine is what they were made on, but those of workloads that say otherwise.
	Machine
	// Workloads are in the order of their names.
	Workloads []*Workload `json:"workloads"`
}

// Machine is what was measured on.
type Machine struct {
	// CPU is the model, Cores how many of them there were. Go is the version.
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

func (m Machine) String() string { return fmt.Sprintf("%s, %d cores, %s", m.CPU, m.Cores, m.Go) }

// Workload is what was measured of one.
type Workload struct {
	// Name is that of scheduler_perf, without benchmark and namespace.
	Name string `json:"name"`
	// Other is the machine, if it is another than that of the results.
	Other *Machine `json:"machine,omitempty"`
	Runs  []Run    `json:"runs"`
}

// Run is one measurement of a workload.
type Run struct {
	// Throughput in pods a second, the average of samples of a second each. 0 if the run was
	// too short for a sample.
	Throughput float64 `json:"throughput"`
	// Attempt is the time of a scheduling attempt that succeeded, binding included, Cycle
	// that of the search for a node alone. In milliseconds.
	Attempt Percentiles `json:"attempt"`
	Cycle   Percentiles `json:"cycle"`
	// Pods is the number of pods that were scheduled, Seconds how long that took.
	Pods    float64 `json:"pods"`
	Seconds float64 `json:"seconds"`
	// CPU is the processor time of a pod in milliseconds, for scheduler, API server and
	// controllers together.
	CPU float64 `json:"cpu"`
	// Allocated is the memory that was allocated for a pod, HeapMiB what was in use in the
	// end. In MiB.
	Allocated float64 `json:"allocated"`
	HeapMiB   float64 `json:"heapMiB"`
	// Nodes is the number of nodes that our allocator was asked for, Known the number of
	// those with a known answer; Steps and Evaluations of whole expressions were needed for
	// the others. For a pod.
	Nodes       float64 `json:"nodes,omitempty"`
	Known       float64 `json:"known,omitempty"`
	Steps       float64 `json:"steps,omitempty"`
	Evaluations float64 `json:"evaluations,omitempty"`
	// Victims is the number of pods that were evicted for the devices of a pod.
	Victims float64 `json:"victims,omitempty"`
}

// Percentiles of a histogram.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Read reads results that were kept.
func Read(path string) (*Results, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	results := &Results{}
	if err := json.Unmarshal(content, results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}

// Write keeps results.
func (r *Results) Write(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// split takes the workloads that compare configurations, and those in which pods are evicted, out of the
// results: each of the three may be measured by itself.
func (r *Results) split() (rest, variants, evicting *Results) {
	of := func() *Results { return &Results{Machine: r.Machine} }
	rest, variants, evicting = of(), of(), of()
	for _, w := range r.Workloads {
		to := rest
		switch testCase, _, _ := strings.Cut(w.Name, "/"); {
		case strings.HasPrefix(w.Name, keepWholeKind):
			to = variants
		case strings.Contains(testCase, "Preemption"):
			to = evicting
		}
		to.Workloads = append(to.Workloads, w)
	}
	return rest, variants, evicting
}

// named returns a workload, nil if it was not measured.
func (r *Results) named(name string) *Workload {
	for _, w := range r.Workloads {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// median of what the runs say. 0 if there are none.
func (w *Workload) median(of func(Run) float64) float64 {
	if w == nil || len(w.Runs) == 0 {
		return 0
	}
	values := make([]float64, len(w.Runs))
	for i, run := range w.Runs {
		values[i] = of(run)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func throughput(r Run) float64 {
	if r.Throughput == 0 && r.Seconds > 0 {
		return r.Pods / r.Seconds
	}
	return r.Throughput
}

func processor(r Run) float64 { return r.CPU }

// ratio of two workloads that ran together: the median over their runs, each with the run
// beside it. With inverse, less is better. 0 if there is nothing to compare, as with one that ran
// on another machine.
func ratio(w, base *Workload, of func(Run) float64, inverse bool) float64 {
	all := ratios(w, base, of, inverse)
	if len(all) == 0 {
		return 0
	}
	return middle(all)
}

func ratios(w, base *Workload, of func(Run) float64, inverse bool) []float64 {
	if w == nil || base == nil || !w.beside(base) {
		return nil
	}
	var all []float64
	for i := range min(len(w.Runs), len(base.Runs)) {
		a, b := of(w.Runs[i]), of(base.Runs[i])
		if inverse {
			a, b = b, a
		}
		if b > 0 {
			all = append(all, a/b)
		}
	}
	return all
}

// place is a workload of ours by the parts of its name, such as
// Steady/1000nodes_16devices_half_grid.
type place struct {
	kind, occupancy, shape string
	nodes, devices         int
}

func placeOf(name string) (p place, ok bool) {
	kind, rest, _ := strings.Cut(name, "/")
	parts := strings.Split(rest, "_")
	if len(parts) != 4 || strings.Contains(rest, "/") {
		return p, false
	}
	p = place{kind: kind, occupancy: parts[2], shape: parts[3]}
	_, err1 := fmt.Sscanf(parts[0], "%dnodes", &p.nodes)
	_, err2 := fmt.Sscanf(parts[1], "%ddevices", &p.devices)
	return p, err1 == nil && err2 == nil
}

func (p place) name() string {
	return fmt.Sprintf("%s/%dnodes_%ddevices_%s_%s", p.kind, p.nodes, p.devices, p.occupancy, p.shape)
}

// with is the same with another shape.
func (p place) with(shape string) place {
	p.shape = shape
	return p
}

// places are our workloads, ordered by what they have in common.
func (r *Results) places() []place {
	var all []place
	for _, w := range r.Workloads {
		if p, ok := placeOf(w.Name); ok {
			all = append(all, p)
		}
	}
	occupancies := []string{"empty", "half", "nearlyfull", "fragmented"}
	shapes := []string{"count", "match", "grid", "ring", "block"}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(
			-cmp.Compare(a.kind, b.kind), cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.devices, b.devices),
			cmp.Compare(slices.Index(occupancies, a.occupancy), slices.Index(occupancies, b.occupancy)),
			cmp.Compare(slices.Index(shapes, a.shape), slices.Index(shapes, b.shape)),
		)
	})
	return all
}
