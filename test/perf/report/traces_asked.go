// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
)

// askedPart compares the preference for links with best effort on single nodes.
func (t *Traces) askedPart() string {
	if len(t.Asked) == 0 {
		return ""
	}
	return "\n" + askedText + t.askedTable() + "\n" + t.faster()
}

// askedTable has a row for each number of idle devices and of those wanted.
func (t *Traces) askedTable() string {
	text := "| node | idle | wanted | nodes | score, best effort | preference | best effort, µs | upstream's allocator, µs | preference, µs: not met | known, the first | known, further | no preference, µs |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	for _, a := range t.Asked {
		text += fmt.Sprintf("| %s | %d of %d | %d | %d | %.0f | %.0f | %s | %s | %s | %s | %s | %s |\n", titles[a.Machine], a.Idle, a.Devices, a.Size, a.Asks,
			share(float64(a.BestEffortScore), float64(a.Asks)), share(float64(a.LinksScore), float64(a.Asks)),
			digits(theirs(a)), digits(around(a)), digits(notMet(a)), digits(known(a)), digits(further(a)), digits(plain(a)))
	}
	return text
}

// faster has two rows for each size of nodes, of best effort alone and with an allocator around it: how long
// both take, from the row above with the least to that with the most, and in how many of the rows the preference
// takes less.
func (t *Traces) faster() string {
	text := "| node | rows | best effort | µs | preference, µs: not met | less in | known, the first | less in | known, further | less in | choosing adds | less in |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	var sizes []int
	rows := map[int][]Asked{}
	for _, a := range t.Asked {
		if rows[a.Devices] == nil {
			sizes = append(sizes, a.Devices)
		}
		rows[a.Devices] = append(rows[a.Devices], a)
	}
	for _, size := range sizes {
		for _, other := range []struct {
			name  string
			takes func(Asked) float64
		}{{"alone", theirs}, {"and an allocator", withAllocator}} {
			text += fmt.Sprintf("| %d devices | %d | %s | %s |", size, len(rows[size]), other.name, span(rows[size], other.takes))
			for _, ours := range []func(Asked) float64{notMet, known, further, choosing} {
				less := len(slices.DeleteFunc(slices.Clone(rows[size]), func(a Asked) bool { return ours(a) >= other.takes(a) }))
				text += fmt.Sprintf(" %s | %d |", span(rows[size], ours), less)
			}
			text += "\n"
		}
	}
	return text
}

func theirs(a Asked) float64  { return a.BestEffort.P50 }
func around(a Asked) float64  { return a.Allocator.P50 }
func notMet(a Asked) float64  { return a.Links.P50 }
func known(a Asked) float64   { return a.Known.P50 }
func further(a Asked) float64 { return a.Further.P50 }
func plain(a Asked) float64   { return a.Plain.P50 }

// choosing is what the preference adds to an allocation without one.
func choosing(a Asked) float64 { return further(a) - plain(a) }

// withAllocator is what an allocator would take that chooses by best effort.
func withAllocator(a Asked) float64 { return theirs(a) + around(a) }

// span is the least and the greatest.
func span(rows []Asked, of func(Asked) float64) string {
	values := make([]float64, len(rows))
	for i, a := range rows {
		values[i] = of(a)
	}
	return digits(slices.Min(values)) + " to " + digits(slices.Max(values))
}
