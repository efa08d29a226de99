// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"time"
)

// Pod describes one pod of a victim.
type Pod struct {
	Priority int32
	// Start is the start time of the pod. The zero time means unknown and counts as the earliest.
	Start time.Time
	// Budgets lists the disruption budgets that count the pod, as sorted positions in [Problem.Allowed].
	Budgets []int
}

// Victim is a pod, or the pods of a group that can only be removed together. It has at least one pod.
type Victim []Pod

// Cost is the cost of removing a set of victims. Fields are compared in kube-scheduler's order for nodes, see
// pickOneNodeForPreemption in k8s.io/kubernetes/pkg/scheduler/framework/preemption.
type Cost struct {
	// Violations is the number of removed pods that violate a disruption budget.
	Violations int
	// Highest is the highest priority of a removed pod, or the minimum of int32 if no pod is removed.
	Highest int32
	// Sum is the sum of the removed pods' priorities. Each priority is shifted by the minimum of int32 so that it isn't
	// negative. So a set with more pods usually has a larger sum.
	Sum int64
	// Pods is the number of removed pods.
	Pods int
	// Earliest is the earliest start among the removed pods with the highest priority.
	Earliest time.Time
}

// none is the cost of removing no victims.
var none = Cost{Highest: math.MinInt32}

// Compare returns a negative number if c is less than other, 0 if they are equal, and a positive number otherwise.
func (c Cost) Compare(other Cost) int {
	return cmp.Or(
		cmp.Compare(c.Violations, other.Violations), cmp.Compare(c.Highest, other.Highest), cmp.Compare(c.Sum, other.Sum),
		cmp.Compare(c.Pods, other.Pods), other.Earliest.Compare(c.Earliest),
	)
}

// with returns the cost after removing the pods of a victim as well. It does not update Violations.
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

// violations returns the number of pods whose removal violates a budget if victims are removed in order. As in kube-scheduler,
// a pod that violates one budget does not count against the budgets after it.
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
