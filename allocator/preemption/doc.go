// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preemption finds pods to remove so that something fits. Among all sufficient sets of victims it returns one of the
// least [Cost], in the order of kube-scheduler's comparison of nodes.
//
//	found, err := preemption.Search(ctx, preemption.Problem{Victims: victims, Allowed: allowed, Fits: fits})
//
// The caller decides what fits. For devices, the package has the parts that schedulers and other programs need. [Release] finds
// the claims that give back devices when pods are gone. [Budgets] are the disruption budgets of pods, and [Needs] returns the
// least number of devices to free.
//
// kube-scheduler removes all victims and adds them back one by one, the most important first. That finds the least cost for
// countable resources such as CPU, but not for devices that belong together. A victim that is added back early may occupy the
// middle of the only cheap set. So for up to [ExactVictims] victims, branch and bound searches all sets. With more victims, the
// least important ones are decided as in kube-scheduler.
package preemption
