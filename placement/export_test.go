// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import "k8s.io/apimachinery/pkg/types"

// Remembered is the memory of all Schedulers.
var Remembered = remembered

// Decided is the memory of what follows the predicates.
var Decided = decided

// Resumed tells whether a result has what follows the predicates from the last run.
func Resumed(r *Result) bool { return r.resumed }

// Joints are how many combinations of sets a Scheduler remembers.
func Joints(s *Scheduler) int { return len(s.joints.known) }

// ForgetAll empties all memories of Placements.
func ForgetAll() {
	remembered.Forget()
	selectedByLabels.Forget()
	decided.Forget()
	standings.Forget()
}

// Used is what all memories of Placements say that they take.
func Used() int64 {
	return remembered.Used() + selectedByLabels.Used() + decided.Used() + standings.Used()
}

// Findings are how many different ones are remembered of a Placement.
func Findings(s *Scheduler, placement types.UID) int {
	distinct := map[*finding]bool{}
	for _, a := range s.memories[placement].look().answers {
		distinct[a.finding] = true
	}
	return len(distinct)
}
