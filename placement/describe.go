// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Describe explains the result as text with tables: conditions, what each filter
// removed and why, and all candidates with their scores in the order of their rank.
func (r *Result) Describe() string {
	var text strings.Builder
	for _, condition := range r.Conditions {
		fmt.Fprintf(&text, "%s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&text, "warning: %s: %s\n", warning.Plugin, warning.Message)
	}
	if r.Available != nil {
		fmt.Fprintf(&text, "\nsets %s: %d clusters\n", strings.Join(r.Available.Eligible, ", "), len(r.Available.Clusters))
	}
	for _, filtered := range r.Filters {
		fmt.Fprintf(&text, "%s removed %d\n", filtered.Filter, len(filtered.Removed))
		for _, removal := range filtered.Removed {
			fmt.Fprintf(&text, "  %s %s\n", removal.Cluster, strings.ReplaceAll(removal.Reason.String(), "\n", "\n    "))
		}
	}
	if len(r.Candidates) > 0 {
		fmt.Fprintln(&text)
		r.describeCandidates(&text)
	}
	return text.String()
}

func (r *Result) describeCandidates(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	columns := []string{"CLUSTER", "TOTAL"}
	for _, p := range r.Prioritizers {
		columns = append(columns, fmt.Sprintf("%s*%d", p.Name, p.Weight))
	}
	fmt.Fprintln(table, strings.Join(append(columns, "VERDICT"), "\t"))
	for _, c := range r.Candidates {
		columns := []string{c.Cluster.Name, fmt.Sprint(c.Total)}
		for _, score := range c.Scores {
			columns = append(columns, fmt.Sprint(score))
		}
		fmt.Fprintln(table, strings.Join(append(columns, c.verdict()), "\t"))
	}
	table.Flush()
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

// scoreSummaryLength is where the note of an event ends.
const scoreSummaryLength = 1000

// ScoreSummary lists the totals of all candidates, sorted by name, as events do:
// "cluster1:100 cluster2:0 ", cut after 1000 bytes.
func (r *Result) ScoreSummary() string {
	var text strings.Builder
	candidates := slices.Clone(r.Candidates)
	sortByName(candidates)
	for _, c := range candidates {
		fmt.Fprintf(&text, "%s:%d ", c.Cluster.Name, c.Total)
		if text.Len() > scoreSummaryLength {
			return text.String()[:scoreSummaryLength] + "......"
		}
	}
	return text.String()
}
