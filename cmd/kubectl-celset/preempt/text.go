// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"io"
	"strings"

	"github.com/celset/celset/cmd/kubectl-celset/simulate"
)

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, priority %d\n", r.Subject, r.Priority)
	if r.Forbidden != "" {
		fmt.Fprintf(&b, "  nobody is evicted for it: %s\n", r.Forbidden)
	}
	if len(r.Fits) > 0 {
		fmt.Fprintf(&b, "  fits without evicting anybody: %s\n", strings.Join(r.Fits, ", "))
	}
	for i := range r.Candidates {
		r.Candidates[i].print(&b)
	}
	printMore(&b, r.MoreCandidates, "where evicting would help, for no less")
	for i := range r.Refused {
		r.Refused[i].print(&b)
	}
	printMore(&b, r.MoreRefused, "where evicting would not help")
	for _, hold := range r.Holds {
		fmt.Fprintf(&b, "  probably held for pod %s (priority %d), which is nominated to node %s", hold.Pod, hold.Priority, hold.Node)
		if hold.Unknown != "" {
			fmt.Fprintf(&b, ": not known: %s", inOneLine(hold.Unknown))
		}
		b.WriteString("\n")
		printClaims(&b, hold.Claims, "")
	}
	switch {
	case r.Error != "":
		fmt.Fprintf(&b, "  error: %s\n", strings.ReplaceAll(strings.TrimSpace(r.Error), "\n", "\n    "))
	case r.Forbidden == "" && len(r.Fits)+len(r.Candidates)+len(r.Refused) == 0:
		b.WriteString("  no node has devices for it\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintln(&b, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printMore(b *strings.Builder, n int, what string) {
	if n > 0 {
		fmt.Fprintf(b, "  and %s %s\n", counted(n, "node"), what)
	}
}

func (c *Candidate) print(b *strings.Builder) {
	fmt.Fprintf(b, "  node %s: would fit with %s evicted, the highest priority %d", c.Node, counted(c.Cost.Pods, "pod"), c.Cost.HighestPriority)
	if c.Cost.BudgetViolations > 0 {
		fmt.Fprintf(b, ", %d of them against a disruption budget", c.Cost.BudgetViolations)
	}
	if !c.Exact {
		b.WriteString("; others might cost less, not all sets of pods were looked at")
	}
	b.WriteString("\n")
	for _, victim := range c.Victims {
		ending := ""
		if victim.Ending {
			ending = ", ending"
		}
		fmt.Fprintf(b, "    evict pod %s (priority %d%s) with %s\n", victim.Pod, victim.Priority, ending, listed(victim.Devices))
	}
	printClaims(b, c.Claims, "for ")
}

func (r *Refusal) print(b *strings.Builder) {
	fmt.Fprintf(b, "  node %s: no: %s\n", r.Node, inOneLine(r.Reason))
	if r.Unmet != "" {
		fmt.Fprintf(b, "    not met then: %s\n", inOneLine(r.Unmet))
	}
	for _, obstacle := range r.InTheWay {
		claim := ""
		if obstacle.Claim != "" {
			claim = "claim " + obstacle.Claim + " with "
		}
		fmt.Fprintf(b, "    in the way: %s%s: %s\n", claim, listed(obstacle.Devices), obstacle.Why)
	}
	if r.Never {
		b.WriteString("    it would not fit either if all devices of the node were free\n")
	}
}

func printClaims(b *strings.Builder, claims []simulate.Claim, before string) {
	for _, claim := range claims {
		fmt.Fprintf(b, "    %sclaim %s: %s\n", before, claim.Name, claim.DevicesByRequest())
	}
}

// listed are devices, without driver and pool if these are the same for all.
func listed(devices []string) string {
	if len(devices) == 0 {
		return "no devices of its own"
	}
	prefix := devices[0][:strings.LastIndex(devices[0], "/")+1]
	names := make([]string, len(devices))
	for i, device := range devices {
		name, isBelow := strings.CutPrefix(device, prefix)
		if !isBelow || strings.Contains(name, "/") {
			return strings.Join(devices, ", ")
		}
		names[i] = name
	}
	return strings.Join(names, ", ")
}

func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
