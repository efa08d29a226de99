// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// Policies as test/perf/trace names them.
const (
	firstFit      = "first fit"
	today         = "today"
	keepWhole     = "KeepWhole"
	keepWholeTies = "KeepWhole, ties at random"
	poolPolicy    = "pool"
)

// plotted are in the order of their colours.
var plotted = []string{today, "random", firstFit, keepWhole, keepWholeTies, poolPolicy}

// titles say what machines are.
var titles = map[string]string{
	"pairs": "four bridged pairs", "ring": "a ring of 8", "mesh": "a mesh of 4 x 4", "cube-mesh": "a hybrid cube mesh of 8 GPUs",
	"gpus": "the same GPUs, any will do", "linked-mesh": "a mesh of 4 x 4, any will do",
}

// Page is docs/trace.md, and the plots by the names of their files in docs/performance.
func (t *Traces) Page() (page string, plots map[string]string) {
	var text strings.Builder
	text.WriteString(tracesIntro)
	fmt.Fprintf(&text, "All numbers are of %d traces with different seeds, each with %d claims for each device.\n\n", t.Traces, t.ClaimsADevice)
	text.WriteString("## Placed at once\n\n" + atOnceText)
	text.WriteString(t.together())
	text.WriteString("\n" + t.fewer() + atOnceAfter)
	text.WriteString(t.comparison())
	plots = map[string]string{}
	for i, mix := range t.mixes() {
		name := fmt.Sprintf("trace-%d.svg", i+1)
		plots[name] = t.plot("Claims for four and eight devices that were placed at once, "+mix, mix, func(r *Replay) float64 {
			return share(r.sum(atOnce, 4, 8), r.sum(claims, 4, 8))
		})
		fmt.Fprintf(&text, "\n![Share of the claims for four and eight devices that were placed at once, by load: %s](performance/%s)\n", mix, name)
	}
	text.WriteString("\n## Waiting, and idle devices\n\n" + waitingText)
	text.WriteString(t.waiting())
	if mixes := t.mixes(); len(mixes) > 0 {
		plots["trace-idle.svg"] = t.plot("Devices idle while somebody waits who wants no more, "+mixes[0], mixes[0], func(r *Replay) float64 { return r.Stranded })
		text.WriteString("\n![Share of the devices that are idle while a claim waits that wants no more, by load](performance/trace-idle.svg)\n")
	}
	text.WriteString("\n## Links\n\n" + linksText)
	text.WriteString(t.links())
	text.WriteString(t.askedPart())
	text.WriteString(t.scheduledPart())
	text.WriteString("\n## Time\n\n")
	fmt.Fprintf(&text, timesText, t.CPU, t.Cores, t.Go)
	text.WriteString(t.times())
	text.WriteString(tracesAgain)
	return text.String(), plots
}

// constrained tells whether the claims for a kind of machine have constraints.
func constrained(machine string) bool { return machine != "gpus" }

// together has a row for each load, over all machines whose claims have constraints and both mixes.
func (t *Traces) together() string {
	text := "| load | today | first fit | KeepWhole | ties at random | pool | than today | than first fit |\n|---|---|---|---|---|---|---|---|\n"
	for _, load := range t.loads() {
		at := func(policy string) float64 {
			good, all := 0.0, 0.0
			for _, machine := range t.machines() {
				for _, mix := range t.mixes() {
					if r := t.of(machine, mix, load, policy); constrained(machine) {
						good, all = good+r.sum(atOnce, 4, 8), all+r.sum(claims, 4, 8)
					}
				}
			}
			return share(good, all)
		}
		text += fmt.Sprintf("| %.0f %% | %s | %s | %s | %s | %s | %s | %s |\n", 100*load,
			percent(at(today)), percent(at(firstFit)), percent(at(keepWhole)), percent(at(keepWholeTies)), percent(at(poolPolicy)),
			more(at(keepWhole), at(today)), more(at(keepWhole), at(firstFit)))
	}
	return text
}

// fewer says where KeepWhole placed fewer claims before a trace ended.
func (t *Traces) fewer() string {
	var text string
	for _, other := range []string{today, firstFit} {
		rows, less, most, of, sum := 0, 0, 0.0, 0.0, 0.0
		for _, r := range t.Replays {
			if r.Policy != keepWhole {
				continue
			}
			rows++
			theirs := t.of(r.Machine, r.Mix, r.Load, other).sum(placed)
			fewer := theirs - r.sum(placed)
			sum -= fewer
			if fewer > 0 {
				less++
			}
			if fewer > most {
				most, of = fewer, theirs
			}
		}
		text += fmt.Sprintf("Of all claims, of any size, KeepWhole placed %+.0f before the traces ended, compared with %s: fewer in %d of the %d rows below", sum, other, less, rows)
		if less > 0 {
			text += fmt.Sprintf(", at most %.0f of %.0f", most, of)
		}
		text += ".\n"
	}
	return text
}

// comparison has a row for each machine, mix and load.
func (t *Traces) comparison() string {
	text := "| machine | mix | load | today | first fit | KeepWhole | ties at random | pool | than today | than first fit |\n|---|---|---|---|---|---|---|---|---|---|\n"
	for _, machine := range t.machines() {
		for _, mix := range t.mixes() {
			for _, load := range t.loads() {
				at := func(policy string) float64 {
					r := t.of(machine, mix, load, policy)
					return share(r.sum(atOnce, 4, 8), r.sum(claims, 4, 8))
				}
				text += fmt.Sprintf("| %s | %s | %.0f %% | %s | %s | %s | %s | %s | %s | %s |\n", titles[machine], mix, 100*load,
					percent(at(today)), percent(at(firstFit)), percent(at(keepWhole)), percent(at(keepWholeTies)), percent(at(poolPolicy)),
					more(at(keepWhole), at(today)), more(at(keepWhole), at(firstFit)))
			}
		}
	}
	return text
}

// waiting has a row for each machine and policy, at the loads that fragment.
func (t *Traces) waiting() string {
	text := "| machine | load | policy | at once: 1 | 2 | 4 | 8 | placed | waited, minutes | idle while one waits |\n|---|---|---|---|---|---|---|---|---|---|\n"
	if len(t.mixes()) == 0 {
		return text
	}
	mix, loads := t.mixes()[0], t.loads()
	for _, machine := range t.machines() {
		for _, load := range loads[max(0, len(loads)-2):] {
			for _, policy := range t.policies(machine) {
				r := t.of(machine, mix, load, policy)
				if r == nil {
					continue
				}
				text += fmt.Sprintf("| %s | %.0f %% | %s |", titles[machine], 100*load, policy)
				for _, size := range []int{1, 2, 4, 8} {
					text += fmt.Sprintf(" %s |", percent(share(r.sum(atOnce, size), r.sum(claims, size))))
				}
				text += fmt.Sprintf(" %.0f of %.0f | %s | %.2f %% |\n", r.sum(placed), r.sum(claims), digits(share(r.sum(waited), r.sum(claims))), 100*r.Stranded)
			}
		}
	}
	return text
}

// links has what links are worth of a claim, where they are counted.
func (t *Traces) links() string {
	text := "| machine | load | policy | two devices | four devices |\n|---|---|---|---|---|\n"
	for _, machine := range t.machines() {
		for _, load := range t.loads() {
			for _, policy := range t.policies(machine) {
				r := t.of(machine, t.mixes()[0], load, policy)
				if r.sum(score) == 0 || policy == keepWholeTies {
					continue
				}
				text += fmt.Sprintf("| %s | %.0f %% | %s | %.0f | %.0f |\n", titles[machine], 100*load, policy,
					share(r.sum(score, 2), r.sum(placed, 2)), share(r.sum(score, 4), r.sum(placed, 4)))
			}
		}
	}
	return text
}

func (t *Traces) times() string {
	text := "| machine | policy | a node, µs | a claim, µs |\n|---|---|---|---|\n"
	for _, of := range t.Times {
		text += fmt.Sprintf("| %s | %s | %s | %s |\n", titles[of.Machine], of.Policy,
			digits(of.Node.P50), digits(of.Decision.P50))
	}
	return text
}

// plot has a panel for each machine whose claims have constraints.
func (t *Traces) plot(title, mix string, value func(*Replay) float64) string {
	var panels []panel
	for _, machine := range t.machines() {
		if !constrained(machine) {
			continue
		}
		p := panel{title: titles[machine]}
		for _, policy := range plotted {
			line := &series{name: policy}
			for _, load := range t.loads() {
				if r := t.of(machine, mix, load, policy); r != nil {
					line.points = append(line.points, [2]float64{load, value(r)})
				}
			}
			p.lines = append(p.lines, line)
		}
		panels = append(panels, p)
	}
	return panelsPlot(title, "load", panels)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// more is by how much one share is more than another.
func more(one, other float64) string {
	if other == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.0f %%", 100*(one/other-1))
}
