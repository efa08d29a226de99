// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celset/celset/allocator"
)

// Print writes the explanation as text. Each line is indented by two spaces or more.
func (e *Explanation) Print(b *strings.Builder) {
	if !e.Fits {
		fmt.Fprintf(b, "  node %s: no: %s\n", e.Node, e.Reason)
		e.printWhy(b)
		return
	}
	effort := ""
	if e.Evaluations+e.Proven > 0 {
		effort = fmt.Sprintf(" (%s, %s)", Counted(e.Steps, "step"), Counted(e.Evaluations, "evaluation"))
	}
	fmt.Fprintf(b, "  node %s: yes%s\n", e.Node, effort)
	for _, claim := range e.Claims {
		fmt.Fprintf(b, "    claim %s: %s\n", claim.Name, claim.DevicesByRequest())
	}
	e.printPreferences(b)
}

func (w *Why) printWhy(b *strings.Builder) {
	for _, r := range w.Requests {
		fmt.Fprintf(b, "    claim %s, request %s: %d requested, %d match, %s%d free\n", r.Claim, r.Name, r.Wanted, r.Matching, unusable(r), r.Free)
	}
	if w.Unmet != nil {
		fmt.Fprintf(b, "    no set satisfies %s\n", w.Unmet)
	}
	for _, cause := range w.Causes {
		fmt.Fprintf(b, "    %s\n", cause.Message)
	}
	for _, owner := range w.InTheWay {
		fmt.Fprintf(b, "    in the way: claim %s with %s\n", owner.Claim, strings.Join(owner.Devices, ", "))
	}
	if w.Never {
		fmt.Fprintln(b, "    the claims would not fit even if all devices of the node were free")
	}
	if w.Unknown != "" {
		fmt.Fprintf(b, "    the search for the cause ended early: %s\n", w.Unknown)
	}
}

func unusable(r Request) string {
	if r.Unusable == 0 {
		return ""
	}
	return fmt.Sprintf("%d of them unusable, ", r.Unusable)
}

// printPreferences writes the values of the preferences, the most important preference first.
func (e *Explanation) printPreferences(b *strings.Builder) {
	if e.Outcome == "" {
		return
	}
	fmt.Fprint(b, "    preferences: ")
	if len(e.Preferences) == 0 {
		fmt.Fprint(b, "not evaluated")
	}
	for i, p := range e.Preferences {
		if i > 0 {
			fmt.Fprint(b, ", then ")
		}
		fmt.Fprint(b, p.Name)
		if len(e.Claims) > 1 {
			fmt.Fprintf(b, " (claim %s)", p.Claim)
		}
		fmt.Fprint(b, " ", allocator.DescribeValue(p.Value.Value, p.Losses))
	}
	if e.Outcome == allocator.PreferenceBestFound {
		fmt.Fprintln(b, "; the search ended early, so better devices may exist")
	} else {
		fmt.Fprintln(b, "; no better devices exist on the node")
	}
}

// DevicesByRequest returns a text that lists the devices by request, with drivers and pools if these differ.
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

// Counted returns a number with a noun, such as "1 node" or "2 nodes".
func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
