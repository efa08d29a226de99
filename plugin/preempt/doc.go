// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preempt evicts pods for devices, and holds the devices until the pod for which others were evicted has them.
//
// [Holding] is asked in each scheduling cycle of any pod: which devices are held for others, and which claims are to be freed.
// [PodHolds] binds the holds of package hold to the pods and claims of the cluster. A [Preempter] works in these steps,
// after a pod has fitted nowhere:
//
//  1. If devices are held for the pod already, it waits for them, or its evictions go on (waiting.go).
//  2. Upstream's preemption looks for nodes. A simulation on each node answers whether the pod fits without some pods
//     (simulation.go), and the victims that cost least are chosen (victims.go).
//  3. The devices are held, the hold is recorded in the condition of the pod, and only then are victims evicted (evicting.go).
//
// [NoHolds] and [NoPreemption] stand in where the feature is off.
package preempt
