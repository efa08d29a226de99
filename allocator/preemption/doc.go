// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preemption finds the victims to remove so that a pod fits. Among all sufficient sets of victims it returns a set of
// the least [Cost]. Costs are ordered as kube-scheduler orders nodes for preemption.
//
//	found, err := preemption.Search(ctx, preemption.Problem{Victims: victims, Allowed: allowed, Fits: fits})
//
// The caller decides whether a set of victims is sufficient. For devices, the package has functions that schedulers and other
// programs need. [Release] finds the claims that give back devices when pods are gone. [Budgets] are the disruption budgets of
// pods, and [Needs] returns the least number of devices to free.
//
// kube-scheduler removes all victims and adds them back one by one, the most important first. This finds the least cost for
// countable resources such as CPU, but not for devices that belong together: a victim that is added back early may occupy the
// middle of the only cheap set. So for up to [ExactVictims] victims, a branch and bound search covers all sets. With more
// victims, it decides only on the decisive victims ([Problem.Decisive]), and the others are decided as in kube-scheduler.
package preemption
