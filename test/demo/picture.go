// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/draw"
)

// textWidth is where events are wrapped.
const textWidth = 84

// waitsForClaim recognizes the event of a pod whose claim is still to be made.
func waitsForClaim(event string) bool {
	return strings.Contains(event, "not created yet") || strings.Contains(event, "not found")
}

// siteOf returns the site with the node.
func (d *demo) siteOf(node string) (site, error) {
	for _, s := range d.sites {
		if s.node == node {
			return s, nil
		}
	}
	return site{}, fmt.Errorf("node %q has no devices", node)
}

// draw shows the devices of sites as the API server knows them. Those of the pod
// are the chosen ones.
func (d *demo) draw(ctx context.Context, pod string, sites ...site) error {
	marks, err := d.marks(ctx, pod)
	if err != nil {
		return err
	}
	for _, s := range sites {
		var picture bytes.Buffer
		if err := draw.Text(&picture, s.Topology, marks[s.node], d.drawOptions()...); err != nil {
			return err
		}
		for i, line := range strings.Split(strings.TrimRight(picture.String(), "\n"), "\n") {
			if i == 0 {
				line = s.node + ": " + line
			}
			d.say("%s", strings.TrimRight("   "+line, " "))
		}
		d.say("")
	}
	return nil
}

// marks are those of all devices that somebody has, by pool, which is named like the node, and device.
func (d *demo) marks(ctx context.Context, pod string) (map[string]map[string]draw.Mark, error) {
	claims, err := d.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	marks := map[string]map[string]draw.Mark{}
	for _, claim := range claims.Items {
		mark := draw.Mark{State: draw.Taken}
		for _, consumer := range claim.Status.ReservedFor {
			mark.Owner = consumer.Name
			if consumer.Name == pod {
				mark.State = draw.Chosen
			}
		}
		for _, result := range results(&claim) {
			if marks[result.Pool] == nil {
				marks[result.Pool] = map[string]draw.Mark{}
			}
			marks[result.Pool][result.Device] = mark
		}
	}
	return marks, nil
}

func (d *demo) drawOptions() []draw.Option {
	if d.Color {
		return []draw.Option{draw.WithColor()}
	}
	return nil
}

// indented wraps a long line.
func indented(text string) string {
	const margin = "     | "
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > textWidth {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return margin + strings.Join(append(lines, line), "\n"+margin)
}
