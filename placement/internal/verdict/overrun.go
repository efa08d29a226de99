// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import "github.com/celset/celset/placement/internal/candidate"

import "github.com/celset/celset/placement/internal/deadline"

// Time must not decide who is selected: a machine that is busy would deselect what an
// idle one selects. So what is not evaluated in time is neither selected nor not
// selected, and the former decision stands. What was evaluated is remembered, and the
// next attempt goes on from there.

// Overrun says that the evaluations took longer than they may.
type Overrun struct {
	// Limit is the one that was exceeded: that of one evaluation, or of all together.
	Limit *deadline.Deadline
	// Evaluations tells that single evaluations took too long. They will do so again, so
	// no attempt gets further than they do.
	Evaluations bool
	// Late are the clusters that were being evaluated when that was found, with the
	// reason [*Late].
	Late []candidate.Removal
	// Pending is how many of the available clusters are not evaluated.
	Pending int
}
