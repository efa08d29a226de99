// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math"

	"github.com/celset/celset/cel/cluster/clock"
)

// Expensive tells which expressions of a selector may cost more than an evaluation may, if lists, maps and texts of
// a cluster have up to 32 elements. On smaller clusters they may do well, so they are not refused; on a cluster
// for which one is too expensive it fails. It also tells which ones use now() so that it can't be told when their
// answers change, and have to be evaluated at each tick of the clock.
func (e *Environment) Expensive(s *Selector) []*Error {
	var all []*Error
	for _, part := range s.expressions {
		if part.stepwise {
			all = append(all, &Error{part.path, fmt.Errorf(
				"when the answer changes can't be told from now() in it, so it is evaluated every %s on each cluster where it reads the time: compare now() with other times, or read parts of it with functions such as getHours()", clock.Tick)})
		}
		estimate, err := part.program.EstimateCost(newCosts())
		if err != nil || estimate.Max <= e.limit {
			continue
		}
		most := fmt.Sprintf("up to %d", estimate.Max)
		if estimate.Max == math.MaxUint64 {
			most = "more than can be told"
		}
		all = append(all, &Error{part.path, fmt.Errorf("an evaluation may cost %s by estimate, and fails on a cluster where it costs more than %d: %s", most, e.limit, advice.Evaluation)})
	}
	return all
}
