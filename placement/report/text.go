// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// A hub has thousands of clusters, but only a few reasons for not selecting them. So the text of a report has each reason once,
// with the number of clusters and the first names. The report itself lists all clusters.

const (
	// mostReasons is the maximum number of reasons in the text for each filter, and for the candidates.
	mostReasons = 10
	// mostSelected is the maximum number of selected clusters in the text.
	mostSelected = 20
	// mostNames is the maximum number of clusters that are named for one reason.
	mostNames = 3
)

// Text explains the decision as text. It contains the conditions, the clusters that each filter removed, and the candidates
// with their scores, best rank first. Clusters with the same reason are grouped, unless the request named clusters.
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
		fmt.Fprintf(d, "  %s does not exist, or is not in these sets\n", name)
	}
	for _, filter := range r.Filters {
		d.filter(filter)
	}
	if len(r.Candidates) > 0 {
		d.candidates(r)
	}
	return d.String()
}

// text collects the text for [Report.Text].
type text struct {
	strings.Builder
	// named is true if the request named clusters. Each of these clusters then has a line of its own.
	named bool
}

// filter writes the clusters that a filter removed.
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

// candidates writes a table of the clusters that passed the filters.
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

// grouped holds clusters by reason. The reasons are in the order of their first occurrence.
type grouped struct {
	of    []*reasoned
	byKey map[string]*reasoned
}

// reasoned holds the clusters that have the same reason. reason is the reason as written for the first of them. listed is the
// number of these clusters that have a row in the table.
type reasoned struct {
	reason   string
	clusters []string
	listed   int
}

// add adds a cluster to the group with the key.
func (g *grouped) add(cluster, key, reason string) *reasoned {
	group := g.byKey[key]
	if group == nil {
		if g.byKey == nil {
			g.byKey = map[string]*reasoned{}
		}
		group = &reasoned{reason: reason}
		g.byKey[key] = group
		g.of = append(g.of, group)
	}
	group.clusters = append(group.clusters, cluster)
	return group
}

// isListed reports whether the cluster that was added last to the group gets a row in the table.
func (g *grouped) isListed(group *reasoned, selected bool) bool {
	most := mostNames
	if selected {
		most = mostSelected
	}
	return len(group.clusters) <= most && (group.listed > 0 || len(g.of) <= mostReasons)
}

// most returns the n largest groups in their original order. clusters and groups are the numbers of clusters and groups that
// are left out.
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

// anonymous removes the cluster's name from a reason, so that equal reasons of several clusters have equal texts.
func anonymous(reason, cluster string) string {
	return strings.NewReplacer("cluster "+cluster+": ", "cluster: ", "AddOnPlacementScore "+cluster+"/", "AddOnPlacementScore /").Replace(reason)
}

// hanging indents all lines of a reason except the first.
func hanging(reason string) string { return strings.ReplaceAll(reason, "\n", "\n    ") }

// First returns at most most names, and the number of the other names.
func First(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
