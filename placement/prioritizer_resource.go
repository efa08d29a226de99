// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import "fmt"

// allocatable is the share that the allocatable amount of a resource has between
// the least, -100, and the most, 100, of all candidates; 100 if these are equal. A
// cluster that does not say both capacity and allocatable, or says what can't be true,
// has 0.
func allocatable(plugin string) scorer {
	resource := amountsOf[plugin]
	return func(r *run, candidates []*Candidate) ([]int64, error) {
		amounts, known := make([]float64, len(candidates)), make([]amount, len(candidates))
		least, most, any := 0.0, 0.0, false
		var unbelievable []string
		for i, c := range candidates {
			if amounts[i], known[i] = amountOf(&c.Cluster.Status, resource); known[i] == outOfRange {
				unbelievable = append(unbelievable, c.Cluster.Name)
			}
			if known[i] != usable {
				continue
			}
			if !any || amounts[i] < least {
				least = amounts[i]
			}
			if !any || amounts[i] > most {
				most = amounts[i]
			}
			any = true
		}
		r.report.outOfRange(ReasonAmountOutOfRange, plugin, fmt.Sprintf("The amounts of %s that ManagedClusters %%s report are no numbers from 0 to 2^63-1; they count as missing", resource), unbelievable)
		result := make([]int64, len(candidates))
		for i := range candidates {
			switch {
			case known[i] != usable:
			case most == least:
				result[i] = MaxScore
			default:
				result[i] = int64(((amounts[i]-least)/(most-least) - 0.5) * (MaxScore - MinScore))
			}
		}
		return result, nil
	}
}
