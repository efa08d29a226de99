// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// dataItem is an item of scheduler_perf's results.
type dataItem struct {
	Data   map[string]float64 `json:"data"`
	Labels map[string]string  `json:"labels"`
}

// counted is a line of what test/perf/scheduler_perf counted besides.
type counted struct {
	Name         string             `json:"name"`
	Scheduled    float64            `json:"scheduled"`
	Seconds      float64            `json:"seconds"`
	CPUSeconds   float64            `json:"cpuSeconds"`
	Values       map[string]float64 `json:"values"`
	HeapMiB      float64            `json:"heapMiB"`
	AllocatedMiB float64            `json:"allocatedMiB"`
}

// Condense reads the raw results in directories, one for each time that all was measured,
// and adds what machine this is.
func Condense(dirs ...string) (*Results, error) {
	results := &Results{Machine: Machine{CPU: CPUModel(), Cores: runtime.NumCPU(), Go: runtime.Version()}}
	workloads := map[string]*Workload{}
	for _, dir := range dirs {
		runs, err := condenseOne(dir)
		if err != nil {
			return nil, err
		}
		for name, run := range runs {
			if workloads[name] == nil {
				workloads[name] = &Workload{Name: name}
				results.Workloads = append(results.Workloads, workloads[name])
			}
			workloads[name].Runs = append(workloads[name].Runs, *run)
		}
	}
	if len(results.Workloads) == 0 {
		return nil, fmt.Errorf("there are no results in %v", dirs)
	}
	slices.SortFunc(results.Workloads, func(a, b *Workload) int { return cmp.Compare(a.Name, b.Name) })
	return results, nil
}

// condenseOne has the last run of each workload in a directory that ended: scheduler_perf
// writes its results when all of them have.
func condenseOne(dir string) (map[string]*Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	runs := map[string]*Run{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var all struct{ DataItems []dataItem }
		if err := json.Unmarshal(content, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, item := range all.DataItems {
			item.enter(runs)
		}
	}
	return runs, enterCounters(filepath.Join(dir, "counters.jsonl"), runs)
}

// nameOf removes the benchmark and the namespace, and what all workloads of upstream are
// called when they come in pairs.
func nameOf(label string) string {
	_, name, _ := strings.Cut(label, "/")
	if at := strings.LastIndex(name, "/"); at >= 0 {
		name = name[:at]
	}
	return strings.TrimSuffix(name, "/all")
}

func (i dataItem) enter(runs map[string]*Run) {
	name := nameOf(i.Labels["Name"])
	if runs[name] == nil {
		runs[name] = &Run{}
	}
	percentiles := Percentiles{i.Data["Perc50"], i.Data["Perc95"], i.Data["Perc99"]}
	switch i.Labels["Metric"] {
	case "SchedulingThroughput":
		runs[name].Throughput = i.Data["Average"]
	case "scheduler_scheduling_algorithm_duration_seconds":
		runs[name].Cycle = percentiles
	case "scheduler_scheduling_attempt_duration_seconds":
		if i.Labels["result"] == "scheduled" {
			runs[name].Attempt = percentiles
		}
	}
}

func enterCounters(path string, runs map[string]*Run) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c counted
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSuffix(c.Name, "/all")
		if runs[name] == nil {
			runs[name] = &Run{}
		}
		c.enter(runs[name])
	}
	return lines.Err()
}

func (c counted) enter(run *Run) {
	run.Pods, run.Seconds, run.HeapMiB = c.Scheduled, c.Seconds, c.HeapMiB
	if c.Scheduled == 0 {
		return
	}
	run.CPU = 1000 * c.CPUSeconds / c.Scheduled
	run.Allocated = c.AllocatedMiB / c.Scheduled
	for name, value := range c.Values {
		value /= c.Scheduled
		switch {
		case strings.HasPrefix(name, "celset_allocation_steps ") && strings.HasSuffix(name, " sum"):
			run.Steps += value
		case strings.HasPrefix(name, "celset_allocation_steps ") && strings.HasSuffix(name, " count"):
			run.Nodes += value
		case name == "celset_cache_hits_total answers":
			run.Known += value
		case name == "celset_device_preemption_victims_total":
			run.Victims += value
		case name == "celset_constraint_evaluations_total set":
			run.Evaluations += value
		}
	}
}

// CPUModel is the name of the processor, as far as the system tells.
func CPUModel() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(content)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
