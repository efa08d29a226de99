// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import clusterv1 "open-cluster-management.io/api/cluster/v1"

// allocatable is the share that the allocatable amount of a resource has between
// the least, -100, and the most, 100, of all candidates; 100 if these are equal. A
// cluster that does not say both capacity and allocatable has 0.
func allocatable(resource clusterv1.ResourceName) scorer {
	return func(_ *run, candidates []*Candidate) ([]int64, error) {
		amounts, known := make([]float64, len(candidates)), make([]bool, len(candidates))
		least, most, any := 0.0, 0.0, false
		for i, c := range candidates {
			if amounts[i], known[i] = amountOf(&c.Cluster.Status, resource); !known[i] {
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
		result := make([]int64, len(candidates))
		for i := range candidates {
			switch {
			case !known[i]:
			case most == least:
				result[i] = MaxScore
			default:
				result[i] = int64(((amounts[i]-least)/(most-least) - 0.5) * (MaxScore - MinScore))
			}
		}
		return result, nil
	}
}

func amountOf(status *clusterv1.ManagedClusterStatus, resource clusterv1.ResourceName) (float64, bool) {
	amount, ok := status.Allocatable[resource]
	if _, hasCapacity := status.Capacity[resource]; !ok || !hasCapacity {
		return 0, false
	}
	return amount.AsApproximateFloat64(), true
}
