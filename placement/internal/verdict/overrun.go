// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
)

// Overrun reports that the evaluations exceeded a time limit. The former decision then stays in effect, because otherwise a
// busy machine would deselect clusters that an idle machine selects. The next attempt reuses the verdicts that were found.
type Overrun struct {
	// Limit is the exceeded time limit, either of one evaluation or of all evaluations together.
	Limit *deadline.Deadline
	// Evaluations is set if single evaluations timed out. They time out in each attempt, so an immediate retry makes no progress.
	Evaluations bool
	// Late lists the clusters whose evaluation was interrupted, each with a reason [*candidate.Late].
	Late []candidate.Removal
	// Pending is the number of available clusters whose evaluation did not end.
	Pending int
}
