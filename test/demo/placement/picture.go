// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

const (
	// maxRows is how many clusters a table shows.
	maxRows = 6
	margin  = "   "
)

// column of a table.
type column struct {
	title string
	value func(member) string
}

var (
	cloudOf   = label("CLOUD", cloudLabel)
	regionOf  = label("REGION", regionLabel)
	versionOf = column{"VERSION", func(m member) string { return m.Status.Version.Kubernetes }}
	setOf     = label("SET", clusterv1beta2.ClusterSetLabel)
	roleOf    = label("ROLE", shopLabel)
	taintsOf  = column{"TAINTS", func(m member) string {
		var taints []string
		for _, taint := range m.Spec.Taints {
			_, name, _ := strings.Cut(taint.Key, "/")
			taints = append(taints, fmt.Sprintf("%s:%s", name, taint.Effect))
		}
		return strings.Join(taints, ",")
	}}
)

func label(title, key string) column {
	return column{title, func(m member) string { return m.Labels[key] }}
}

// draw draws a table of clusters, the first ones if there are many.
func (d *demo) draw(members []member, columns ...column) {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	row := func(first string, cell func(column) string) {
		cells := []string{margin + first}
		for _, c := range columns {
			cells = append(cells, cell(c))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row("CLUSTER", func(c column) string { return c.title })
	for _, m := range members[:min(maxRows, len(members))] {
		row(m.Name, func(c column) string { return c.value(m) })
	}
	table.Flush()
	for line := range strings.Lines(text.String()) {
		d.say("%s", strings.TrimRight(line, " \n"))
	}
	if rest := len(members) - maxRows; rest > 0 {
		d.say("%s... and %d more", margin, rest)
	}
}

// drawCounts draws a bar for each of the regions.
func (d *demo) drawCounts(counts map[string]int) {
	for _, region := range slices.Sorted(maps.Keys(counts)) {
		d.say("%s", strings.TrimRight(fmt.Sprintf("%s%-12s %s", margin, region, strings.Repeat("#", counts[region])), " "))
	}
}

// quote draws a text as something that was read.
func (d *demo) quote(text string) {
	for line := range strings.Lines(text) {
		d.say("     | %s", strings.TrimRight(line, "\n"))
	}
}
