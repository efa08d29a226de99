// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// scheduledPart has for each scheduler what came of the traces, and below that what the simulation
// says.
func (t *Traces) scheduledPart() string {
	if len(t.Scheduled) == 0 {
		return ""
	}
	const without, with = "manifests", "manifests, KeepWhole"
	large, wanted := map[string]float64{}, map[string]float64{}
	first, decisions, late, others := t.Scheduled[0], 0, 0, 0
	text := "| machine | scheduler | | 4 and 8 at once | all at once | placed | waited, minutes | idle while one waits |\n|---|---|---|---|---|---|---|---|\n"
	for _, s := range t.Scheduled {
		decisions, late, others = decisions+s.Decisions, late+s.Late, others+s.Others
		large[s.Scheduler] += s.Real.sum(atOnce, 4, 8)
		wanted[s.Scheduler] += s.Real.sum(claims, 4, 8)
		text += scheduledRow(titles[s.Machine], s.Scheduler, "scheduler", &s.Real)
		text += scheduledRow("", "", "simulated: "+s.Policy, &s.Simulated)
	}
	return "\n## On a whole scheduler\n\n" + scheduledText + fmt.Sprintf(scheduledPlan, first.Nodes, first.ClaimsADevice, first.Mix, 100*first.Load, first.Traces) +
		text + "\n" + fmt.Sprintf(scheduledDecisions, large[without], wanted[without], large[with], decisions, decisions-others, late)
}

func scheduledRow(machine, scheduler, who string, o *Outcome) string {
	return fmt.Sprintf("| %s | %s | %s | %.0f of %.0f | %.0f of %.0f | %.0f | %s | %.2f %% |\n", machine, scheduler, who,
		o.sum(atOnce, 4, 8), o.sum(claims, 4, 8), o.sum(atOnce), o.sum(claims), o.sum(placed),
		digits(share(o.sum(waited), o.sum(claims))), 100*o.Stranded)
}
