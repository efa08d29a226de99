// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preemption finds who has to go so that something fits: of all sets of victims with which it
// would, one of the least [Cost], in the order in which kube-scheduler compares nodes.
//
//	found, err := preemption.Search(ctx, preemption.Problem{Victims: victims, Allowed: allowed, Fits: fits})
//
// What fits is for the caller to say. What it needs to know for devices is here, for schedulers and for
// those who have none: which claims give them back when pods are gone ([Release]), which disruption budgets a
// pod counts for ([Budgets]), and what has to be freed at least ([Needs]).
//
// kube-scheduler removes all victims and adds back one after the other, the most important first.
// That finds the least for what can be counted, as CPU can. Devices that have to belong together
// can't: who is added back first may stand in the middle of the only set for which little would
// have to go. So up to [ExactVictims] all sets are looked at, by branch and bound; of more victims
// the least important are decided on in kube-scheduler's way.
package preemption
