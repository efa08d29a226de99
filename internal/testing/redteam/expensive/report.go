// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what a search has found.
type Report struct {
	Environment string
	// Tried is how many expressions were made, Refused how many of them did not compile,
	// Measured how many were evaluated.
	Tried, Refused, Measured int
	// MedianTime and MedianBytes are what a unit takes in most expressions, in nanoseconds
	// and bytes.
	MedianTime, MedianBytes float64
	// Slowest and Largest are the worst expression of each overload, the worst first.
	Slowest, Largest []Measured
	// Unreached are overloads of which no expression was evaluated.
	Unreached []*Call

	seen                  int
	perUnit, bytesPerUnit []float64
}

func newReport(environment *Environment) *Report { return &Report{Environment: environment.Name} }

func (r *Report) finish(hills []*hill) {
	for _, h := range hills {
		if len(h.slow) == 0 {
			r.Unreached = append(r.Unreached, h.call)
			continue
		}
		r.Slowest = append(r.Slowest, h.slow[0])
		r.Largest = append(r.Largest, h.large[0])
	}
	slices.SortStableFunc(r.Slowest, func(a, b Measured) int { return cmp.Compare(b.PerUnit(), a.PerUnit()) })
	slices.SortStableFunc(r.Largest, func(a, b Measured) int { return cmp.Compare(b.BytesPerUnit(), a.BytesPerUnit()) })
	r.MedianTime, r.MedianBytes = median(r.perUnit), median(r.bytesPerUnit)
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// Ratio is how many times the median the worst expression takes per unit; zero if there
// is none.
func (r *Report) Ratio() float64 {
	if len(r.Slowest) == 0 || r.MedianTime == 0 {
		return 0
	}
	return r.Slowest[0].PerUnit() / r.MedianTime
}

// Overdue are expressions that went on after their context had ended.
func (r *Report) Overdue() []Measured {
	return slices.DeleteFunc(slices.Clone(r.Slowest), func(m Measured) bool { return !m.Overdue })
}

// shown is how many rows a table has.
const shown = 15

// String is a text with two tables: what takes most time, and what allocates most.
func (r *Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d expressions tried, %d refused, %d evaluated; of %d overloads %d were not reached\n",
		r.Environment, r.Tried, r.Refused, r.Measured, len(r.Slowest)+len(r.Unreached), len(r.Unreached))
	fmt.Fprintf(&text, "in the median a unit of cost takes %.1f ns and %.1f bytes; at most %.1f times that time\n\n", r.MedianTime, r.MedianBytes, r.Ratio())
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "overload\tcost\ttime\tns/unit\ttimes the median\texpression")
	for _, m := range r.Slowest[:min(shown, len(r.Slowest))] {
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f\t%.1f\t%s\n", m.Call, m.Cost, m.Time, m.PerUnit(), m.PerUnit()/max(r.MedianTime, 1e-9), Abbreviate(m.Expression))
	}
	fmt.Fprintln(w, "\noverload\tcost\tbytes\tbytes/unit\ttimes the median\texpression")
	for _, m := range r.Largest[:min(shown, len(r.Largest))] {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t%s\n", m.Call, m.Cost, m.Bytes, m.BytesPerUnit(), m.BytesPerUnit()/max(r.MedianBytes, 1e-9), Abbreviate(m.Expression))
	}
	_ = w.Flush()
	return text.String()
}
