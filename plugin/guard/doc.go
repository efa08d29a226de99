// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard prevents the pods of one namespace from using up the scheduler's time. A scheduler tries one pod after the
// other, so a slow attempt for one pod delays all others.
//
// In addition to the budgets of the allocator, three mechanisms limit the time:
//
//   - An attempt ends when its time is over and pods of other namespaces wait ([Attempt]).
//   - Claims whose attempts exceeded a budget or their time wait for a back-off, which is longer each time.
//   - Each namespace has a token bucket as its share of the time. While pods of namespaces with tokens wait, pods of namespaces
//     without tokens are refused ([Guard.Admit]).
//
// The back-off and the share refuse a pod before any computation for the pod. Most pods are refused before they are queued
// ([Guard.Gate]), so that a waiting pod costs no attempts. The guard activates these pods later without an event in the cluster
// ([Guard.Run]).
//
// To find waiting pods, the guard needs the scheduling queue, which a plugin can't read. The program provides the queue
// ([Guard.Watch]). Without a queue the guard sees no waiting pods. Then namespaces have no shares, and each attempt ends when
// its time is over.
package guard
