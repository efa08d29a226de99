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
	first, decisions, late, others := t.Scheduled[0], 0, 0, 0
	text := "| machine | scheduler | | 4 and 8 at once | all at once | placed | waited, minutes | idle while one waits |\n|---|---|---|---|---|---|---|---|\n"
	for _, s := range t.Scheduled {
		decisions, late, others = decisions+s.Decisions, late+s.Late, others+s.Others
		text += scheduledRow(titles[s.Machine], s.Scheduler, "scheduler", &s.Real)
		text += scheduledRow("", "", "simulated: "+s.Policy, &s.Simulated)
	}
	return "\n## On a whole scheduler\n\n" + scheduledText + fmt.Sprintf(scheduledPlan, first.Nodes, first.Traces, first.ClaimsADevice, first.Mix, 100*first.Load) +
		text + "\n" + fmt.Sprintf(scheduledDecisions, decisions, decisions-others, late)
}

func scheduledRow(machine, scheduler, who string, o *Outcome) string {
	return fmt.Sprintf("| %s | %s | %s | %.0f of %.0f | %.0f of %.0f | %.0f | %s | %.2f %% |\n", machine, scheduler, who,
		o.sum(atOnce, 4, 8), o.sum(claims, 4, 8), o.sum(atOnce), o.sum(claims), o.sum(placed),
		digits(share(o.sum(waited), o.sum(claims))), 100*o.Stranded)
}
