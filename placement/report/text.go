// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// A hub has thousands of clusters, and a few reasons why they are not selected. So the text has each reason once, with
// the number of clusters and the names of the first ones. All clusters are in the data.

const (
	// mostReasons is the number of different reasons that the text has of a filter, and of the candidates.
	mostReasons = 10
	// mostSelected is the number of selected clusters that the text lists.
	mostSelected = 20
	// mostNames is the number of clusters that are named where several are counted.
	mostNames = 3
)

// Text explains the decision: conditions, what each filter removed and why, and the candidates with their scores in the
// order of their rank. Clusters with the same reason are grouped, unless the report is about clusters that were named.
func (r *Report) Text() string {
	d := &text{named: r.named}
	for _, condition := range r.Status.Conditions {
		fmt.Fprintf(d, "%s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(d, "warning: %s: %s\n", warning.Plugin, warning.Message)
	}
	fmt.Fprintf(d, "\nsets %s: %d clusters\n", strings.Join(r.Available.Eligible, ", "), r.Available.Clusters)
	for _, name := range r.Available.Missing {
		fmt.Fprintf(d, "  %s is in none of these sets, or there is no such cluster\n", name)
	}
	for _, filter := range r.Filters {
		d.filter(filter)
	}
	if len(r.Candidates) > 0 {
		d.candidates(r)
	}
	return d.String()
}

// text builds the result of [Report.Text].
type text struct {
	strings.Builder
	// named: clusters were asked for by name. Each of them has a line of its own.
	named bool
}

// filter describes what a filter removed.
func (d *text) filter(filter Filter) {
	fmt.Fprintf(d, "%s removed %d\n", filter.Name, filter.Count)
	var groups grouped
	for _, removal := range filter.Removed {
		if d.named {
			fmt.Fprintf(d, "  %s %s\n", removal.Cluster, hanging(removal.Reason))
			continue
		}
		groups.add(removal.Cluster, anonymous(removal.Reason, removal.Cluster), removal.Reason)
	}
	shown, clusters, reasons := groups.most(mostReasons)
	for _, group := range shown {
		if len(group.clusters) == 1 {
			fmt.Fprintf(d, "  %s %s\n", group.clusters[0], hanging(group.reason))
			continue
		}
		fmt.Fprintf(d, "  %d clusters (%s): %s\n", len(group.clusters), First(group.clusters, mostNames), hanging(group.reason))
	}
	if clusters > 0 {
		fmt.Fprintf(d, "  %d more clusters, for %d other reasons\n", clusters, reasons)
	}
}

// candidates describes the clusters that passed the filters, in a table.
func (d *text) candidates(r *Report) {
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	heads := []string{"CLUSTER", "TOTAL"}
	for _, p := range r.Prioritizers {
		heads = append(heads, fmt.Sprintf("%s*%d", p.Name, p.Weight))
	}
	fmt.Fprintln(rows, strings.Join(append(heads, "VERDICT"), "\t"))
	var groups grouped
	for _, c := range r.Candidates {
		verdict := c.verdict()
		if group := groups.add(c.Cluster, verdict, verdict); d.named || groups.isListed(group, c.Selected) {
			group.listed++
			columns := []string{c.Cluster, fmt.Sprint(c.Score)}
			for _, p := range r.Prioritizers {
				columns = append(columns, fmt.Sprint(p.Scores[c.Cluster]))
			}
			fmt.Fprintln(rows, strings.Join(append(columns, verdict), "\t"))
		}
	}
	rows.Flush()
	fmt.Fprintf(d, "\n%s", table.String())
	clusters, reasons := 0, 0
	for _, group := range groups.of {
		switch rest := len(group.clusters) - group.listed; {
		case group.listed == 0:
			clusters, reasons = clusters+rest, reasons+1
		case rest > 0:
			fmt.Fprintf(d, "... and %d more: %s\n", rest, group.reason)
		}
	}
	if clusters > 0 {
		fmt.Fprintf(d, "... and %d more, for %d other reasons\n", clusters, reasons)
	}
}

func (c *Candidate) verdict() string {
	verdict := "selected"
	if !c.Selected {
		verdict = c.Reason
	}
	if c.Avoided != "" {
		verdict += ", avoided for " + c.Avoided
	}
	return verdict
}

// grouped are clusters by their reasons, in the order in which the reasons were met.
type grouped struct {
	of    []*reasoned
	known map[string]*reasoned
}

// reasoned are the clusters with one reason. reason is that of the first one, listed the number that a table has.
type reasoned struct {
	reason   string
	clusters []string
	listed   int
}

// add adds a cluster to the group with the key.
func (g *grouped) add(cluster, key, reason string) *reasoned {
	group := g.known[key]
	if group == nil {
		if g.known == nil {
			g.known = map[string]*reasoned{}
		}
		group = &reasoned{reason: reason}
		g.known[key] = group
		g.of = append(g.of, group)
	}
	group.clusters = append(group.clusters, cluster)
	return group
}

// isListed reports whether a table has a row for the cluster that was added last, to group.
func (g *grouped) isListed(group *reasoned, selected bool) bool {
	most := mostNames
	if selected {
		most = mostSelected
	}
	return len(group.clusters) <= most && (group.listed > 0 || len(g.of) <= mostReasons)
}

// most returns the largest groups, in the order in which they were met, and how many clusters and groups are left out.
func (g *grouped) most(n int) (shown []*reasoned, clusters, groups int) {
	if len(g.of) <= n {
		return g.of, 0, 0
	}
	bySize := slices.Clone(g.of)
	slices.SortStableFunc(bySize, func(a, b *reasoned) int { return len(b.clusters) - len(a.clusters) })
	for _, group := range g.of {
		if slices.Contains(bySize[:n], group) {
			shown = append(shown, group)
		} else {
			clusters += len(group.clusters)
		}
	}
	return shown, clusters, len(g.of) - n
}

// anonymous removes the name of its cluster from a reason: failures have it, and are the same for many clusters.
func anonymous(reason, cluster string) string {
	return strings.NewReplacer("cluster "+cluster+": ", "cluster: ", "AddOnPlacementScore "+cluster+"/", "AddOnPlacementScore /").Replace(reason)
}

// hanging indents the lines of a reason after the first one.
func hanging(reason string) string { return strings.ReplaceAll(reason, "\n", "\n    ") }

// First returns the first names, and how many more there are.
func First(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
