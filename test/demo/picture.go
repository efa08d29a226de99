// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/topology"
)

const (
	// margin is the indentation of pictures. bar begins each line of a quoted text.
	margin, bar = "   ", "     | "
	// textWidth is the maximum length of a line in a wrapped message.
	textWidth = 84
	// maxRows is the maximum number of clusters in a table.
	maxRows = 6
)

// draw draws the devices of the sites. It highlights the devices of the pod.
func (d *demo) draw(ctx context.Context, pod string, sites ...site) error {
	for _, s := range sites {
		owners, err := d.owners(ctx, s.node)
		if err != nil {
			return err
		}
		marks := map[string]draw.Mark{}
		for device, owner := range owners {
			marks[device] = draw.Mark{State: draw.Taken, Owner: owner}
			if owner == pod {
				marks[device] = draw.Mark{State: draw.Chosen}
			}
		}
		if err := d.picture(s.node+": ", s.Topology, marks); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) picture(title string, t topology.Topology, marks map[string]draw.Mark) error {
	var options []draw.Option
	if d.Color {
		options = append(options, draw.WithColor())
	}
	text := bytes.NewBufferString(title)
	if err := draw.Text(text, t, marks, options...); err != nil {
		return err
	}
	d.lines(margin, text.String())
	return nil
}

// lines prints each line of a text after the margin, and then an empty line.
func (d *demo) lines(margin, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		d.say("%s", strings.TrimRight(margin+line, " \n"))
	}
	d.say("")
}

// wrapped breaks a long line into lines of at most textWidth characters.
func wrapped(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > textWidth {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}

// A column is a column in a table of clusters.
type column struct {
	title string
	value func(cluster) string
}

// label returns a column with the clusters' values of the label key.
func label(title, key string) column {
	return column{title, func(c cluster) string { return c.Labels[key] }}
}

// table prints a row for each of the first maxRows clusters.
func (d *demo) table(clusters []cluster, columns ...column) {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	row := func(first string, cell func(column) string) {
		for _, c := range columns {
			first += "\t" + cell(c)
		}
		fmt.Fprintln(table, first)
	}
	row("CLUSTER", func(c column) string { return c.title })
	for _, m := range clusters[:min(maxRows, len(clusters))] {
		row(m.Name, func(c column) string { return c.value(m) })
	}
	table.Flush()
	if rest := len(clusters) - maxRows; rest > 0 {
		fmt.Fprintf(&text, "... and %d more\n", rest)
	}
	d.lines(margin, text.String())
}
