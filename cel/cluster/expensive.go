// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math"
)

// Expensive tells which expressions of a selector may cost more than an evaluation may, if lists, maps and texts of
// a cluster have up to 32 elements. On smaller clusters they may do well, so they are not refused; on a cluster
// for which one is too expensive it fails.
func (e *Environment) Expensive(s *Selector) []*Error {
	var all []*Error
	for _, part := range s.expressions {
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
