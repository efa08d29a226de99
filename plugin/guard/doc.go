// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps the pods of one namespace from taking the scheduler's time from the
// pods of all others. A scheduler tries one pod after the other, so what one pod's attempt
// takes is what all others wait.
//
// Three things bound that, beside the budgets of the allocator:
//
//   - An attempt ends when its time is over and pods of other namespaces wait ([Attempt]).
//   - Claims whose attempts used up a budget or their time back off, longer each time.
//   - Namespaces have a share of the time, as a bucket of tokens. While pods of namespaces
//     with tokens wait, those of namespaces without are put off ([Guard.Admit]).
//
// The second and the third refuse a pod before anything is computed for it. Most pods are refused before they are queued
// ([Guard.Gate]), so that a pod that waits costs no attempts. The guard has them tried again without any event in the
// cluster ([Guard.Run]).
//
// Whether pods wait is seen in the scheduling queue, which a plugin does not get to see: the
// program shows it ([Guard.Watch]). In a program that does not, nobody is known to wait, so
// there are no shares, and each attempt ends when its time is over.
package guard
