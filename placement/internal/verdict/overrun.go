// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/deadline"
)

// Overrun says that the evaluations took longer than they may. Then the former decision
// stands: otherwise a busy machine would deselect clusters that an idle one selects. The
// verdicts that were found are remembered, and the next attempt goes on from there.
type Overrun struct {
	// Limit is the limit that was exceeded: of one evaluation, or of all together.
	Limit *deadline.Deadline
	// Evaluations tells that single evaluations took too long. They will at each attempt,
	// so that no attempt gets further.
	Evaluations bool
	// Late are the clusters whose evaluation was ended, each with a reason [*candidate.Late].
	Late []candidate.Removal
	// Pending is the number of available clusters that are not evaluated.
	Pending int
}
