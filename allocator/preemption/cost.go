// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"time"
)

// Pod is a pod that goes with a victim.
type Pod struct {
	Priority int32
	// Start is when it started. It is zero if that is not known, which counts as the earliest.
	Start time.Time
	// Budgets are the positions in [Problem.Allowed] of the disruption budgets that it counts for, in
	// ascending order.
	Budgets []int
}

// Victim is who goes or stays as a whole: a pod, or the pods of a group. It has at least one.
type Victim []Pod

// Cost is what it takes to remove victims. kube-scheduler compares nodes by it, see
// pickOneNodeForPreemption in k8s.io/kubernetes/pkg/scheduler/framework/preemption.
type Cost struct {
	// Violations is for how many pods a disruption budget does not allow it.
	Violations int
	// Highest is the highest priority of a pod, the least that there is if there are no pods.
	Highest int32
	// Sum is that of all priorities, each so much above the least that there is that it isn't
	// negative. So more pods are mostly a larger sum.
	Sum int64
	// Pods is how many there are.
	Pods int
	// Earliest is when the first of the pods of the highest priority started.
	Earliest time.Time
}

// none is the cost of removing nobody.
var none = Cost{Highest: math.MinInt32}

// Compare orders costs: negative if c is less than the other.
func (c Cost) Compare(other Cost) int {
	return cmp.Or(
		cmp.Compare(c.Violations, other.Violations), cmp.Compare(c.Highest, other.Highest), cmp.Compare(c.Sum, other.Sum),
		cmp.Compare(c.Pods, other.Pods), other.Earliest.Compare(c.Earliest),
	)
}

// with adds the pods of a victim, without what budgets say.
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

// violations counts the pods whose removal some budget does not allow, if those of the victims that
// come first are removed first. A pod for which one budget has nothing left takes nothing from
// those after it. That is how kube-scheduler counts.
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
