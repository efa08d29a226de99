// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
)

// PriorityOf returns the priority of a pod, or 0 if it is not set.
func PriorityOf(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// PodOf returns the description of a pod in a victim. A pod that has not started counts as started now.
func PodOf(pod *v1.Pod, budgets Budgets, now time.Time) Pod {
	return Pod{Priority: PriorityOf(pod), Start: startOf(pod, now), Budgets: budgets.Of(pod)}
}

// CompareImportance compares pods as kube-scheduler does. It returns a negative number if a is more important than b: a has a
// higher priority or, with equal priorities, started earlier.
func CompareImportance(a, b *v1.Pod, now time.Time) int {
	return cmp.Or(cmp.Compare(PriorityOf(b), PriorityOf(a)), startOf(a, now).Compare(startOf(b, now)))
}

func startOf(pod *v1.Pod, now time.Time) time.Time {
	if pod.Status.StartTime == nil {
		return now
	}
	return pod.Status.StartTime.Time
}
