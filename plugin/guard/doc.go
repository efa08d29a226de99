// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard prevents the pods of one namespace from using up the scheduler's time. A scheduler tries one pod after the other,
// so a slow attempt for one pod delays all others.
//
// Three mechanisms limit this, besides the budgets of the allocator:
//
//   - An attempt ends when its time is over and pods of other namespaces wait ([Attempt]).
//   - Claims whose attempts used up a budget or their time back off, longer each time.
//   - Each namespace has a token bucket as its share of the time. While pods of namespaces with tokens wait, pods of namespaces
//     without tokens are refused ([Guard.Admit]).
//
// The last two refuse a pod before any computation for it. Most pods are refused before they are queued ([Guard.Gate]), so that a
// waiting pod costs no attempts. The guard activates these pods later without an event in the cluster ([Guard.Run]).
//
// To find waiting pods, the guard needs the scheduling queue, which a plugin can't read. The program provides the queue
// ([Guard.Watch]). Without it the guard sees no waiting pods, so there are no shares, and each attempt ends when its time is
// over.
package guard
