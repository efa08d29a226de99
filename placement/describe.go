// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// A hub has thousands of clusters, and a few reasons why they are not selected. So the text has each reason once, with
// the number of clusters and the names of the first ones. All clusters are in the data, see package report.

const (
	// mostReasons is the number of different reasons that the text has of a filter, and of the candidates.
	mostReasons = 10
	// mostSelected is the number of selected clusters that the text lists.
	mostSelected = 20
)

// Describe explains the result as text: conditions, what each filter removed and why, and the candidates with their
// scores in the order of their rank. Clusters with the same reason are grouped. If clusters are named, the text is
// about these, each by itself.
func (r *Result) Describe(clusters ...string) string {
	d := &description{only: sets.New(clusters...)}
	for _, condition := range r.Conditions {
		fmt.Fprintf(d, "%s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(d, "warning: %s: %s\n", warning.Plugin, warning.Message)
	}
	if r.Available != nil {
		fmt.Fprintf(d, "\nsets %s: %d clusters\n", strings.Join(r.Available.Eligible, ", "), len(r.Available.Clusters))
		d.unavailable(r.Available)
	}
	for _, filtered := range r.Filters {
		d.filter(filtered)
	}
	if len(r.Candidates) > 0 {
		d.candidates(r)
	}
	return d.String()
}

// description is the text that [Result.Describe] makes.
type description struct {
	strings.Builder
	// only are the clusters that the text is about, empty for all.
	only sets.Set[string]
}

func (d *description) has(cluster string) bool { return len(d.only) == 0 || d.only.Has(cluster) }

// unavailable names the clusters that were asked for and are in no set that the Placement may select from.
func (d *description) unavailable(from *Availability) {
	missing := d.only.Clone()
	for _, cluster := range from.Clusters {
		missing.Delete(cluster.Name)
	}
	for _, name := range sets.List(missing) {
		fmt.Fprintf(d, "  %s is in none of these sets, or there is no such cluster\n", name)
	}
}

// filter describes what a filter removed.
func (d *description) filter(filtered Filtered) {
	fmt.Fprintf(d, "%s removed %d\n", filtered.Filter, len(filtered.Removed))
	var groups grouped
	for _, removal := range filtered.Removed {
		switch reason := removal.Reason.String(); {
		case !d.has(removal.Cluster):
		case len(d.only) > 0:
			fmt.Fprintf(d, "  %s %s\n", removal.Cluster, hanging(reason))
		default:
			groups.add(removal.Cluster, anonymous(reason, removal.Cluster), reason)
		}
	}
	shown, clusters, reasons := groups.most(mostReasons)
	for _, group := range shown {
		if len(group.clusters) == 1 {
			fmt.Fprintf(d, "  %s %s\n", group.clusters[0], hanging(group.reason))
			continue
		}
		fmt.Fprintf(d, "  %d clusters (%s): %s\n", len(group.clusters), firstOf(group.clusters), hanging(group.reason))
	}
	if clusters > 0 {
		fmt.Fprintf(d, "  %d more clusters, for %d other reasons\n", clusters, reasons)
	}
}

// candidates describes the clusters that passed the filters, in a table.
func (d *description) candidates(r *Result) {
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	heads := []string{"CLUSTER", "TOTAL"}
	for _, p := range r.Prioritizers {
		heads = append(heads, fmt.Sprintf("%s*%d", p.Name, p.Weight))
	}
	fmt.Fprintln(rows, strings.Join(append(heads, "VERDICT"), "\t"))
	var groups grouped
	for _, c := range r.Candidates {
		if !d.has(c.Cluster.Name) {
			continue
		}
		verdict := c.verdict()
		if group := groups.add(c.Cluster.Name, verdict, verdict); len(d.only) > 0 || groups.isListed(group, c.Selected) {
			group.listed++
			c.writeRow(rows, verdict)
		}
	}
	if len(groups.of) == 0 {
		return
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

func (c *Candidate) writeRow(to io.Writer, verdict string) {
	columns := []string{c.Cluster.Name, fmt.Sprint(c.Total)}
	for _, score := range c.Scores {
		columns = append(columns, fmt.Sprint(score))
	}
	fmt.Fprintln(to, strings.Join(append(columns, verdict), "\t"))
}

func (c *Candidate) verdict() string {
	verdict := "selected"
	if !c.Selected {
		verdict = c.Reason.String()
	}
	if c.Avoided != nil {
		verdict += ", avoided for " + describeTaint(c.Avoided)
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
	most := named
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

func describeTaint(taint *clusterv1.Taint) string {
	if taint.Value == "" {
		return fmt.Sprintf("%s:%s", taint.Key, taint.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
}
