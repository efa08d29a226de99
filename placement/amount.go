// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

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

// amountOf returns the allocatable amount of a resource if capacity and allocatable are
// both said, and both can be true.
func amountOf(status *clusterv1.ManagedClusterStatus, name clusterv1.ResourceName) (float64, amount) {
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
