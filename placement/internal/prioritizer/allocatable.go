// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/internal/candidate"
)

// AmountsOf are the resources that prioritizers read.
var AmountsOf = map[string]clusterv1.ResourceName{ResourceAllocatableCPU: clusterv1.ResourceCPU, ResourceAllocatableMemory: clusterv1.ResourceMemory}

// allocatable is a prioritizer that compares amounts of a resource.
type allocatable struct{ plugin string }

// describe says what the prioritizer prefers.
func (a allocatable) describe() string {
	return fmt.Sprintf("%s prefers clusters with much allocatable %s.", a.plugin, AmountsOf[a.plugin])
}

// score is the share that the allocatable amount of a resource has between
// the least, -100, and the most, 100, of all candidates; 100 if these are equal. A
// cluster that does not say both capacity and allocatable, or says what can't be true,
// has 0.
func (a allocatable) score(in *Inputs, candidates []*candidate.Candidate) ([]int64, error) {
	resource := AmountsOf[a.plugin]
	amounts, known := make([]float64, len(candidates)), make([]amount, len(candidates))
	least, most, any := 0.0, 0.0, false
	var unbelievable []string
	for i, c := range candidates {
		if amounts[i], known[i] = AmountOf(&c.Cluster.Status, resource); known[i] == outOfRange {
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
	in.Found.WarnOutOfRange(wellknown.ReasonAmountOutOfRange, a.plugin, fmt.Sprintf("The amounts of %s that ManagedClusters %%s report are no numbers from 0 to 2^63-1; they count as missing", resource), unbelievable)
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

// What a cluster has is said by the cluster, which may say anything. A score that is made
// of it must not rank a cluster before all others, nor take time: an amount that can't be
// true is none.

// maxAmount is the largest amount of a resource, that of a quantity without fraction.
const maxAmount = math.MaxInt64

// amount is what a cluster says of a resource.
type amount int

const (
	missing amount = iota
	usable
	outOfRange
)

// AmountOf returns the allocatable amount of a resource if capacity and allocatable are
// both said, and both can be true.
func AmountOf(status *clusterv1.ManagedClusterStatus, name clusterv1.ResourceName) (float64, amount) {
	allocatable, ok := status.Allocatable[name]
	capacity, hasCapacity := status.Capacity[name]
	if !ok || !hasCapacity {
		return 0, missing
	}
	value, inRange := valueIn(&allocatable)
	if _, both := valueIn(&capacity); !both || !inRange {
		return 0, outOfRange
	}
	return value, usable
}

// valueIn is a quantity as a number, which it is approximately and at once, however large
// its exponent: no more than that and its sign may be asked of it.
func valueIn(quantity *resource.Quantity) (value float64, inRange bool) {
	switch quantity.Sign() {
	case -1:
		return 0, false
	case 0:
		return 0, true
	default:
		value = quantity.AsApproximateFloat64()
		return value, value <= maxAmount
	}
}
