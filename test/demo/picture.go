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
	// margin is left of pictures, and bar left of quoted texts.
	margin, bar = "   ", "     | "
	// textWidth is the longest line of a wrapped message.
	textWidth = 84
	// maxRows is the largest number of clusters in a table.
	maxRows = 6
)

// draw shows the devices of nodes. The pod's devices are drawn as chosen.
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

// lines shows a text with a margin, and an empty line below.
func (d *demo) lines(margin, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		d.say("%s", strings.TrimRight(margin+line, " \n"))
	}
	d.say("")
}

// wrapped breaks a long line.
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

// A column of a table of clusters.
type column struct {
	title string
	value func(cluster) string
}

// label is a column with the values of a label.
func label(title, key string) column {
	return column{title, func(c cluster) string { return c.Labels[key] }}
}

// table shows the first clusters.
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
