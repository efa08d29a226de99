// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
)

// Overrun reports that the evaluations exceeded a time limit. The former decision then stays in effect, because otherwise a busy
// machine would deselect clusters that an idle machine selects. The next attempt reuses the verdicts found so far.
type Overrun struct {
	// Limit is the exceeded limit: of one evaluation, or of all evaluations together.
	Limit *deadline.Deadline
	// Evaluations is set if single evaluations timed out. They time out at every attempt, so retrying makes no progress.
	Evaluations bool
	// Late lists the clusters whose evaluation was interrupted, each with a reason [*candidate.Late].
	Late []candidate.Removal
	// Pending is the number of available clusters that were not evaluated to the end.
	Pending int
}
