// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
)

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error { return r.print(w, "") }

// print writes the report. It writes the text more after the nodes.
func (r *Report) print(w io.Writer, more string) error {
	var b strings.Builder
	r.printSubject(&b)
	r.Scheduling.Print(&b)
	for _, claim := range r.Allocated {
		fmt.Fprintf(&b, "  claim %s is allocated: %s\n", claim.Name, claim.DevicesByRequest())
	}
	for _, score := range r.Scores {
		printScore(&b, score)
	}
	for _, added := range r.Added {
		fmt.Fprintf(&b, "  attribute %s: from DeviceAttributes %s\n", added.Attribute, strings.Join(added.From, ", "))
	}
	shown := r.shown()
	printNodes(&b, shown)
	if left := len(r.Nodes) - len(shown); left > 0 {
		fmt.Fprintf(&b, "  %s without a device for the claims\n", explain.Counted(int64(left), "more node"))
	}
	b.WriteString(more)
	switch {
	case r.Error != "":
		fmt.Fprintf(&b, "  error: %s\n", strings.ReplaceAll(strings.TrimSpace(r.Error), "\n", "\n    "))
	case r.Incomplete != "":
		fmt.Fprintf(&b, "  incomplete: %s\n", r.Incomplete)
	case len(r.Nodes) == 0 && more == "":
		fmt.Fprintln(&b, "  there are no nodes")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) printSubject(b *strings.Builder) {
	var parts []string
	if r.Cluster != "" {
		parts = append(parts, "cluster "+r.Cluster)
	}
	if r.Subject != "" {
		parts = append(parts, r.Subject)
	}
	fmt.Fprintln(b, strings.Join(parts, ": "))
}

// PrintShort writes the first node that fits and the number of further nodes that fit. Then it writes the reasons why other
// nodes don't fit, the most frequent reason first.
func (r *Report) PrintShort(w io.Writer) error {
	short := *r
	short.Nodes = nil
	fitting, reasons := 0, map[string]int{}
	for _, node := range r.Nodes {
		if node.Fits && fitting == 0 {
			short.Nodes = append(short.Nodes, node)
		}
		if node.Fits {
			fitting++
		} else {
			reasons[node.Reason]++
		}
	}
	var b strings.Builder
	if fitting > 1 {
		fmt.Fprintf(&b, "  %s: yes\n", explain.Counted(int64(fitting-1), "more node"))
	}
	for _, reason := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "  %s: no: %s\n", explain.Counted(int64(reasons[reason]), "node"), reason)
	}
	return short.print(w, b.String())
}

// shown returns the nodes to print. If Why is set, it leaves out nodes without any device that matches a request, unless that
// would leave out all nodes.
func (r *Report) shown() []*explain.Explanation {
	shown := slices.DeleteFunc(slices.Clone(r.Nodes), func(n *explain.Explanation) bool {
		return len(n.Requests) > 0 && !slices.ContainsFunc(n.Requests, func(r explain.Request) bool { return r.Matching+r.Failed > 0 })
	})
	if len(shown) == 0 {
		return r.Nodes
	}
	return shown
}

// Print writes the facts as lines of text.
func (s *Scheduling) Print(b *strings.Builder) {
	for _, reason := range s.Refused {
		fmt.Fprintf(b, "  no: %s\n", reason)
	}
	for _, what := range s.NotChecked {
		fmt.Fprintf(b, "  not checked: %s\n", what)
	}
	for _, said := range s.Quoted {
		fmt.Fprintf(b, "  %s\n", strings.Join(strings.Fields(said), " "))
	}
}

func printScore(b *strings.Builder, score *explain.Score) {
	fmt.Fprintf(b, "  claim %s has its devices on node %s: %s\n", score.Claim, score.Node, cmp.Or(values(score.Has), "no preference applies"))
	printBest(b, "among its own and the free devices", score.Free)
	printBest(b, "if all devices of the node were free", score.Ever)
}

func printBest(b *strings.Builder, of string, best explain.Best) {
	if best.Reason != "" {
		fmt.Fprintf(b, "    %s: none: %s\n", of, best.Reason)
		return
	}
	fmt.Fprintf(b, "    %s: %s: %s: %s\n", of, cmp.Or(string(best.Outcome), "any"), values(best.Values), strings.Join(best.Devices, ", "))
}

// values returns the values of several preferences as text. The most important preference comes first.
func values(of []explain.Value) string {
	texts := make([]string, len(of))
	for i, value := range of {
		texts[i] = value.Name + " " + allocator.DescribeValue(value.Value, value.Losses)
		if value.Error != "" {
			texts[i] = fmt.Sprintf("%s fails: %s", value.Name, strings.Join(strings.Fields(value.Error), " "))
		}
	}
	return strings.Join(texts, ", ")
}
