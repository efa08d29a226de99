// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preempt evicts pods to free devices. It holds these devices for the pod that needs them, the preemptor, until the
// preemptor has them. A hold of package hold records the preemptor, the devices and the victims.
//
// In each scheduling cycle, [Holding] answers which devices are held for other pods, and which allocated claims must be freed
// for other pods. [PodHolds] keeps holds up to date with the cluster's pods and claims. [Preempter] acts if a pod fits nowhere:
//
//  1. If devices are already held for the pod, the pod waits for them, or its evictions continue (waiting.go).
//  2. Upstream's preemption looks for nodes. A simulation on each node tests whether the pod fits without certain pods
//     (simulation.go). On each node, the cheapest victims are chosen (victims.go).
//  3. The devices are held, and the hold is recorded in the condition of the preemptor. Only then are victims evicted
//     (evicting.go).
//
// If preemption for devices is off, [NoHolds] replaces Holding and [NoPreemption] replaces Preempter.
package preempt
