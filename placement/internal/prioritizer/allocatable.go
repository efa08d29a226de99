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

// allocatable is a prioritizer that compares the allocatable amounts of a resource.
type allocatable struct {
	name     string
	resource clusterv1.ResourceName
}

// describe returns a sentence that says which clusters the prioritizer prefers.
func (a allocatable) describe() string {
	return fmt.Sprintf("%s prefers clusters with much allocatable %s.", a.name, a.resource)
}

// reads returns the inputs of the scores.
func (a allocatable) reads() Reads { return Reads{Amount: a.resource} }

// score maps the allocatable amounts linearly to scores: -100 for the smallest amount among the candidates, 100 for the
// largest. If all amounts are equal, the scores are 100. A cluster gets 0 if it reports no capacity or no allocatable amount,
// or an impossible amount.
func (a allocatable) score(in *Inputs, candidates []*candidate.Candidate) ([]int64, error) {
	amounts, known := make([]float64, len(candidates)), make([]amount, len(candidates))
	least, most, any := 0.0, 0.0, false
	var unbelievable []string
	for i, c := range candidates {
		if amounts[i], known[i] = AmountOf(&c.Cluster.Status, a.resource); known[i] == outOfRange {
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
	in.Found.WarnOutOfRange(wellknown.ReasonAmountOutOfRange, a.name, fmt.Sprintf("The amounts of %s that ManagedClusters %%s report are not numbers from 0 to 2^63-1, so they count as missing", a.resource), unbelievable)
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

// A cluster may report any amount. An impossible amount must not rank the cluster first, and must not take long to compute. So
// it counts as missing.

// maxAmount is the largest possible amount: the largest quantity without a fraction.
const maxAmount = math.MaxInt64

// amount says whether a cluster reports a usable amount.
type amount int

const (
	missing amount = iota
	usable
	outOfRange
)

// AmountOf returns the allocatable amount of a resource, and whether it is usable: both capacity and allocatable must be valid.
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

// valueIn returns the approximate value of a quantity. For a large exponent, it computes only the sign and the approximate
// value, because the exact value would take long.
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
