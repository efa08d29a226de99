// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/fragmentation"
)

// Names of the metrics of free device sets.
const (
	setsName          = subsystem + "_device_sets"
	incompleteName    = subsystem + "_device_sets_incomplete"
	askedName         = subsystem + "_device_set_claims"
	countedAtName     = subsystem + "_device_sets_last_count_timestamp_seconds"
	countDurationName = subsystem + "_device_sets_last_count_duration_seconds"
)

// CountOutcome is a value of the label "result" of celset_scheduler_device_sets_counts_total. It is the result of counting the
// free device sets of the cluster.
type CountOutcome string

const (
	// CountComplete means that the sets of all shapes were counted.
	CountComplete CountOutcome = "complete"
	// CountPartial means that some shapes could not be counted, or that the search for a better packing was not completed.
	CountPartial CountOutcome = "partial"
	// CountUnchanged means that the cluster has not changed since the last count.
	CountUnchanged CountOutcome = "unchanged"
	// CountFailed means that no shape could be counted.
	CountFailed CountOutcome = "failed"
)

// Fragmentation is the report whose numbers the metrics export.
type Fragmentation struct {
	Report *fragmentation.Report
	// At is the time of the count. Took is its duration.
	At   time.Time
	Took time.Duration
}

// newDeviceSets returns a collector that exports the last report. If a class or shape is deleted, later reports lack it, so its
// time series ends.
func newDeviceSets() *collector[*Fragmentation] {
	d := deviceSets{
		sets: newDesc(setsName, "Number of additional claims of this shape that can get devices at the same time. The states are now, packed (if allocated claims were packed better) and idle (if all devices were free).", "class", "constraint", "devices", "state"),
		incomplete: newDesc(incompleteName, "1 if the value of celset_scheduler_device_sets is only a lower bound because counting was incomplete, otherwise 0.",
			"class", "constraint", "devices", "state"),
		asked: newDesc(askedName, "Number of claims that ask for this number of devices of the class with the constraint. Allocated and unallocated claims count.",
			"class", "constraint", "devices"),
		at:   newDesc(countedAtName, "Time at which the values of celset_scheduler_device_sets were last confirmed, in seconds since the epoch."),
		took: newDesc(countDurationName, "Time to count the values of celset_scheduler_device_sets."),
	}
	return &collector[*Fragmentation]{descs: []*metrics.Desc{d.sets, d.incomplete, d.asked, d.at, d.took}, show: d.show}
}

// deviceSets holds the descriptions of the metrics of a report.
type deviceSets struct {
	sets, incomplete, asked, at, took *metrics.Desc
}

// ShowFragmentation sets the report to export. If found is nil, nothing is exported.
func (m *Metrics) ShowFragmentation(found *Fragmentation) { m.deviceSets.setSource(found) }

// ObserveCount counts an attempt to count the free device sets of the cluster.
func (m *Metrics) ObserveCount(outcome CountOutcome) { m.counts.WithLabelValues(string(outcome)).Inc() }

// Fragmentation returns the exported report, or nil.
func (m *Metrics) Fragmentation() *Fragmentation {
	if known := m.deviceSets.source.Load(); known != nil {
		return *known
	}
	return nil
}

// Publication is a value of the label "result" of celset_scheduler_device_sets_publications_total.
type Publication string

const (
	// PublicationWritten means that the counts were written to the hub.
	PublicationWritten Publication = "written"
	// PublicationFailed means that the write failed and will be repeated.
	PublicationFailed Publication = "failed"
)

// ObservePublication counts an attempt to write the counts of device sets to a hub.
func (m *Metrics) ObservePublication(outcome Publication) {
	m.publications.WithLabelValues(string(outcome)).Inc()
}

func (d deviceSets) show(last *Fragmentation, value func(desc *metrics.Desc, value float64, labels ...string)) {
	if last == nil {
		return
	}
	value(d.at, float64(last.At.UnixMilli())/1000)
	value(d.took, last.Took.Seconds())
	shown := map[allocator.Shape]bool{}
	for _, s := range last.Report.Shapes {
		// A duplicate time series would fail the whole scrape.
		shape := allocator.Shape{Class: s.Class, Constraint: s.Constraint, Count: s.Devices}
		if shown[shape] {
			continue
		}
		shown[shape] = true
		devices := strconv.Itoa(s.Devices)
		value(d.asked, float64(s.Asked), s.Class, s.Constraint, devices)
		for state, count := range CountsOf(&s, last.Report.NotPacked == "") {
			value(d.sets, float64(count.Sets), s.Class, s.Constraint, devices, state)
			incomplete := 0.0
			if count.AtLeast {
				incomplete = 1
			}
			value(d.incomplete, incomplete, s.Class, s.Constraint, devices, state)
		}
	}
}

// CountsOf returns the counts of a shape by state. If no packing was computed, the report has the current counts in its place.
// They would mean that packing gains nothing, so CountsOf leaves them out.
func CountsOf(s *fragmentation.Shape, isPacked bool) map[string]fragmentation.Count {
	if s.Error != "" {
		return nil
	}
	counts := map[string]fragmentation.Count{stateNow: s.Now, stateIdle: s.Idle}
	if isPacked {
		counts[statePacked] = s.Packed
	}
	return counts
}
