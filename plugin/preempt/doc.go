// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preempt evicts pods for devices. It holds these devices until the pod that needs them, the preemptor, has them.
//
// In each scheduling cycle [Holding] answers which devices are held for other pods, and which claims are to be freed. [PodHolds]
// binds the holds of package hold to the pods and claims of the cluster. A [Preempter] acts after a pod has fitted nowhere:
//
//  1. If devices are already held for the pod, the pod waits for them, or its evictions continue (waiting.go).
//  2. Upstream's preemption looks for nodes. A simulation on each node tests whether the pod fits without certain pods
//     (simulation.go). The cheapest victims are chosen (victims.go).
//  3. The devices are held, and the hold is recorded in the condition of the pod. Only then are victims evicted (evicting.go).
//
// [NoHolds] and [NoPreemption] replace them if the feature is off.
package preempt
