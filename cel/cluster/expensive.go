// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math"
)

// Expensive returns an error for each expression of a selector that may exceed the cost limit on a large cluster, whose lists,
// maps and texts have 32 elements each. The errors are warnings: the expression may work on smaller clusters. On a cluster
// where it is too expensive, its evaluation fails.
func (e *Environment) Expensive(s *Selector) []*Error {
	var all []*Error
	for _, part := range s.expressions {
		estimate, err := part.program.EstimateCost(newCosts())
		if err != nil || estimate.Max <= e.limit {
			continue
		}
		most := fmt.Sprintf("up to %d", estimate.Max)
		if estimate.Max == math.MaxUint64 {
			most = "an unknown number of"
		}
		all = append(all, &Error{part.path, fmt.Errorf("an evaluation may cost %s CEL cost units by estimate, and fails on a cluster where it costs more than %d: %s", most, e.limit, advice.Evaluation)})
	}
	return all
}
