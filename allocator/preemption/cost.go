// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"time"
)

// Pod is a pod of a victim.
type Pod struct {
	Priority int32
	// Start is the start time of the pod. Zero means unknown and counts as the earliest.
	Start time.Time
	// Budgets are the positions in [Problem.Allowed] of the disruption budgets that count the pod, sorted.
	Budgets []int
}

// Victim is removed or stays as a whole: a pod, or the pods of a group. It has at least one pod.
type Victim []Pod

// Cost is the cost of removing victims. kube-scheduler compares nodes in the same order, see pickOneNodeForPreemption in
// k8s.io/kubernetes/pkg/scheduler/framework/preemption.
type Cost struct {
	// Violations is the number of pods whose removal violates a disruption budget.
	Violations int
	// Highest is the highest priority of a pod, or the minimum of int32 without pods.
	Highest int32
	// Sum is the sum of all priorities, each shifted by the minimum of int32 so that it isn't negative. So more pods usually have a
	// larger sum.
	Sum int64
	// Pods is the number of pods.
	Pods int
	// Earliest is the earliest start of a pod with the highest priority.
	Earliest time.Time
}

// none is the cost of removing no victim.
var none = Cost{Highest: math.MinInt32}

// Compare returns a negative number if c is less than other.
func (c Cost) Compare(other Cost) int {
	return cmp.Or(
		cmp.Compare(c.Violations, other.Violations), cmp.Compare(c.Highest, other.Highest), cmp.Compare(c.Sum, other.Sum),
		cmp.Compare(c.Pods, other.Pods), other.Earliest.Compare(c.Earliest),
	)
}

// with returns the cost after adding the pods of a victim. It does not change Violations.
func (c Cost) with(victim Victim) Cost {
	for _, pod := range victim {
		switch {
		case c.Pods == 0 || pod.Priority > c.Highest:
			c.Highest, c.Earliest = pod.Priority, pod.Start
		case pod.Priority == c.Highest && pod.Start.Before(c.Earliest):
			c.Earliest = pod.Start
		}
		c.Sum += int64(pod.Priority) - math.MinInt32
		c.Pods++
	}
	return c
}

// violations counts the pods whose removal some budget does not allow, if victims are removed in order. As in kube-scheduler, a
// pod without allowance in one budget takes nothing from its later budgets.
func violations(victims []Victim, removed func(i int) bool, allowed []int32) int {
	left := make([]int32, len(allowed))
	copy(left, allowed)
	count := 0
	for i, victim := range victims {
		if !removed(i) {
			continue
		}
		for _, pod := range victim {
			for _, budget := range pod.Budgets {
				if left[budget]--; left[budget] < 0 {
					count++
					break
				}
			}
		}
	}
	return count
}
