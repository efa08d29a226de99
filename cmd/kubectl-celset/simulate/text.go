// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/celset/celset/allocator"
)

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, r.Subject)
	for _, claim := range r.Allocated {
		fmt.Fprintf(&b, "  claim %s has been allocated: %s\n", claim.Name, claim.DevicesByRequest())
	}
	for _, node := range r.Nodes {
		node.print(&b)
	}
	switch {
	case r.Error != "":
		fmt.Fprintf(&b, "  error: %s\n", strings.ReplaceAll(strings.TrimSpace(r.Error), "\n", "\n    "))
	case len(r.Nodes) == 0:
		fmt.Fprintln(&b, "  there are no nodes")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Node) print(b *strings.Builder) {
	if !n.Fits {
		fmt.Fprintf(b, "  node %s: no: %s\n", n.Name, n.Reason)
		return
	}
	effort := ""
	if n.Evaluations+n.Proven > 0 {
		effort = fmt.Sprintf(" (%s, %s)", counted(n.Steps, "step"), counted(n.Evaluations, "evaluation"))
	}
	fmt.Fprintf(b, "  node %s: yes%s\n", n.Name, effort)
	for _, claim := range n.Claims {
		fmt.Fprintf(b, "    claim %s: %s\n", claim.Name, claim.DevicesByRequest())
	}
	n.printPreferences(b)
}

// printPreferences says how good the devices are, by what, the most important one first.
func (n *Node) printPreferences(b *strings.Builder) {
	if n.Outcome == "" {
		return
	}
	fmt.Fprintf(b, "    %s", n.Outcome)
	for i, p := range n.Preferences {
		by := ", then "
		if i == 0 {
			by = " by "
		}
		fmt.Fprint(b, by, p.Name)
		if len(n.Claims) > 1 {
			fmt.Fprintf(b, " (claim %s)", p.Claim)
		}
		fmt.Fprint(b, ": ", allocator.DescribeValue(p.Value, p.Losses))
	}
	if n.Outcome == allocator.PreferenceBestFound {
		fmt.Fprint(b, "; the search for better ones ended before it was through")
	}
	fmt.Fprintln(b)
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// DevicesByRequest lists the devices by request, with drivers and pools if there are several.
func (c Claim) DevicesByRequest() string {
	mixed := slices.ContainsFunc(c.Devices, func(d Device) bool {
		return d.Pool != c.Devices[0].Pool || d.Driver != c.Devices[0].Driver
	})
	var parts []string
	for i, device := range c.Devices {
		name := device.Device
		if mixed {
			name = device.Driver + "/" + device.Pool + "/" + device.Device
		}
		if i > 0 && device.Request == c.Devices[i-1].Request {
			parts[len(parts)-1] += ", " + name
		} else {
			parts = append(parts, fmt.Sprintf("%s: %s", device.Request, name))
		}
	}
	if len(parts) == 0 {
		return "no devices"
	}
	return strings.Join(parts, "; ")
}
